import type { FastifyBaseLogger } from 'fastify';
import { type Release, Semaphore } from '../../core/fairness/semaphore.ts';
import { rest } from '../../core/repeat.ts';
import type { Database } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import type { CallLedger, QuotaRequest, Reservation, Tokens } from '../../providers/call-ledger.ts';
import { type CallEnd, type CallStart, recordOf, startOfRecord } from '../../providers/call-record.ts';
import type { FailedUsage } from '../../providers/port.ts';
import { boundOf, inputBound } from './input-bound.ts';
import { createLedger, type QuotaLedger } from './quota-ledger.ts';
import {
  applyToQuota,
  chargeExpired,
  dropCharged,
  hasBudgets,
  type LedgerRequest,
  type QuotaState,
  readQuota,
  reservationWork,
  reserveSent,
  type StoredRecord,
  sendReserved,
  writeRecords,
} from './quota-store.ts';
import { QuotaReserved, quotaExceeded, refusedByBudget } from './refusals.ts';
import { createSettlements, type Settlements } from './settlements.ts';

/** The max. tokens of the shared token per tenant, ever (spec: limits). */
export const quotaLimits: Tokens = { input: 3_000_000, output: 1_000_000 };

/** Milliseconds within which a reserved call must leave. */
export const defaultUnsentLease = 30_000;

/** Below this, an answer is not worth its cost (contract: completions). */
const minOutput = 16;

export interface QuotaOptions {
  pool: Statements;
  db: Database;
  logger: FastifyBaseLogger;
  /** Milliseconds; tests use a shorter time. */
  maxWait?: number;
  /** Milliseconds within which a reserved call must leave; tests use less. */
  unsentLease?: number;
  /** For metrics: called for each refused call, because quota or budget is used up or the wait was too long. */
  onRefusal?: ((reason: 'used_up' | 'budget' | 'reserved') => void) | undefined;
}

// Milliseconds.
const defaultMaxWait = 60_000;
const leaseMargin = 30_000;
/** How long a tenant's quota counts as scarce after it did not suffice for a call that was about to leave. */
const scarcity = 60_000;
const minPause = 20;
const maxPause = 200;

/** `waiting`: the call fits once others have settled, within the quota or, where it is named, this budget. */
type Attempt =
  | { readonly state: 'reserved'; readonly reservation: Reservation }
  | { readonly state: 'free' }
  | { readonly state: 'waiting'; readonly budget: string | undefined };

/** The quota of the shared token, budget reservations, and the records of all calls. */
export class Quota implements CallLedger {
  readonly inputBound = inputBound;
  readonly #db: Database;
  readonly #logger: FastifyBaseLogger;
  readonly #maxWait: number;
  readonly #onRefusal: QuotaOptions['onRefusal'];
  readonly #ledger: QuotaLedger;
  readonly #settlements: Settlements;
  readonly #supply = new TenantSupply();
  /**
   * The calls that wait: one for the quota, and one for the budgets of a caller, agent and model, retries at a time.
   */
  readonly #queues = new Semaphore({ maxOfTenant: 1 });
  /** Interrupts the pauses of a tenant's calls that retry. */
  readonly #pauses = new Map<string, Set<AbortController>>();

  constructor(options: QuotaOptions) {
    const { pool, db, logger, maxWait = defaultMaxWait, unsentLease = defaultUnsentLease, onRefusal } = options;
    this.#db = db;
    this.#logger = logger;
    this.#maxWait = maxWait;
    this.#onRefusal = onRefusal;
    this.#settlements = createSettlements(logger);
    this.#ledger = createLedger({
      apply: (tenant, batch) =>
        applyToQuota(pool, tenant, batch, { limits: quotaLimits, minOutput, lease: unsentLease }),
      send: (tenant, sendings) => sendReserved(pool, tenant, sendings),
      reserveSent: (tenant, ledgerRequest) => reserveSent(pool, tenant, ledgerRequest, quotaLimits),
      hasBudgets: (tenant) => hasBudgets(pool, tenant),
      write: (tenant, records) => writeRecords(pool, tenant, records),
    });
  }

  async reserve(request: QuotaRequest): Promise<Reservation | undefined> {
    const { tenant, call, hasBudgets: known } = request;
    if (call.token === 'own' && !(known ?? (await this.#ledger.hasBudgets(tenant)))) return undefined;
    const { quota, budget } = queuesOf(request);
    const busy = [quota, budget].find((queue) => queue !== undefined && this.#queues.taken(queue) > 0);
    if (busy !== undefined) return await this.#wait(request, busy, undefined);
    const attempt = await this.#attempt(request);
    if (attempt.state !== 'waiting') return reservationOf(attempt);
    return await this.#wait(request, attempt.budget === undefined ? (quota ?? budget) : budget, attempt.budget);
  }

  /** A reservation that is made as its call leaves; undefined: the call has to reserve in advance. */
  reserveOnSend(request: QuotaRequest): Reservation | undefined {
    const { tenant, call, output, maxDuration } = request;
    if (call.token !== 'shared' || this.#supply.of(tenant) !== 'ample') return undefined;
    const ledgerRequest = ledgerRequestOf(request);
    const { budget } = queuesOf(request);
    const reserved = this.#reservation(request, ledgerRequest.inputBound, output);
    // `maybe`: the database may have reserved, and the connection failed before it said so.
    let state: 'none' | 'maybe' | 'reserved' = 'none';
    return {
      output,
      send: async () => {
        // Calls that wait for the quota, or for a budget of this caller, agent and model, come first.
        if (this.#queues.taken(tenant) > 0 || this.#queues.taken(budget) > 0) return false;
        state = 'maybe';
        const lease = maxDuration + leaseMargin;
        const isReserved = await this.#ledger.reserveSent(tenant, { ...ledgerRequest, lease });
        state = isReserved ? 'reserved' : 'none';
        if (!isReserved) this.#supply.noteScarce(tenant);
        return isReserved;
      },
      settle: async (end) => (state === 'none' ? { input: 0, output: 0 } : await reserved.settle(end)),
    };
  }

  async record(tenant: string, call: CallStart, end: CallEnd): Promise<void> {
    const record = storedRecord(call, end);
    if (record !== undefined) await this.#settlements.settle(() => this.#ledger.record(tenant, record));
  }

  async state(tenant: string): Promise<QuotaState> {
    await chargeExpired(this.#db, tenant);
    return await readQuota(this.#db, tenant);
  }

  /** For all tenants, charges the reservations of dead processes, or releases those whose calls were not sent. */
  async upkeep(findTenants: FindTenants): Promise<void> {
    await forEachTenant(await findTenants(reservationWork.expired), (tenant) => chargeExpired(this.#db, tenant));
    await dropCharged(this.#db, findTenants);
  }

  /** Waits, up to a limit, for settlements not yet stored. */
  async close(): Promise<void> {
    await this.#settlements.close();
  }

  async #attempt(request: QuotaRequest): Promise<Attempt> {
    const { tenant, call, output } = request;
    const ledgerRequest = ledgerRequestOf(request);
    const { reservation, inputBound: input } = ledgerRequest;
    const decision = await this.#ledger.reserve(tenant, ledgerRequest).catch((error) => {
      // The connection can fail after the database has reserved.
      const nothing = { reservation, input: 0, output: 0, record: undefined };
      void this.#settlements.settle(() => this.#ledger.settle(tenant, nothing));
      throw error;
    });
    switch (decision.outcome) {
      case 'reserved':
        if (call.token === 'shared' && decision.granted === output) this.#supply.noteAmple(tenant);
        return { state: 'reserved', reservation: this.#reservation(request, input, decision.granted) };
      case 'free':
        return { state: 'free' };
      case 'wait':
        return { state: 'waiting', budget: decision.budget };
      case 'exceeded':
        this.#onRefusal?.('used_up');
        throw quotaExceeded();
      default:
        if (decision.outcome === 'over') this.#onRefusal?.('budget');
        throw refusedByBudget(decision);
    }
  }

  #reservation({ tenant, call, maxDuration }: QuotaRequest, input: number, granted: number): Reservation {
    return {
      output: granted,
      send: () => this.#ledger.send(tenant, { reservation: call.id, lease: maxDuration + leaseMargin }),
      settle: async (end) => {
        const tokens = tokensOf(end.usage);
        const settlement = { reservation: call.id, ...tokens, record: storedRecord(call, end) };
        if ((tokens.input ?? 0) > input || (tokens.output ?? 0) > granted) {
          const reserved = { input, output: granted };
          this.#logger.warn({ tenant, reserved, tokens }, 'a provider counted more than its cap');
        }
        await this.#settlements.settle(() => this.#ledger.settle(tenant, settlement));
        for (const pause of this.#pauses.get(tenant) ?? []) pause.abort();
        return { input: tokens.input ?? input, output: tokens.output ?? granted };
      },
    };
  }

  /** Retries when it is the call's turn in the queue. `budget` is what the call waits for; undefined: the quota. */
  async #wait(request: QuotaRequest, queue: string, budget: string | undefined): Promise<Reservation | undefined> {
    const deadline = new AbortController();
    let waitsFor = budget;
    const timer = setTimeout(() => {
      this.#onRefusal?.('reserved');
      deadline.abort(new QuotaReserved(waitsFor));
    }, this.#maxWait);
    const signal = request.signal === undefined ? deadline.signal : AbortSignal.any([request.signal, deadline.signal]);
    let release: Release | undefined;
    try {
      release = await this.#queues.acquire(queue, signal);
      for (let pause = minPause; ; pause = Math.min(maxPause, pause * 1.5)) {
        const attempt = await this.#attempt(request);
        if (attempt.state !== 'waiting') return reservationOf(attempt);
        waitsFor = attempt.budget;
        // Other processes do not announce what they release, so pauses are short.
        await this.#pause(request.tenant, pause * (0.5 + Math.random()), signal);
        signal.throwIfAborted();
      }
    } finally {
      clearTimeout(timer);
      release?.();
    }
  }

  async #pause(tenant: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    const settled = new AbortController();
    const ofTenant = this.#pauses.getOrInsertComputed(tenant, () => new Set()).add(settled);
    await rest(milliseconds, AbortSignal.any([signal, settled.signal]));
    ofTenant.delete(settled);
    if (ofTenant.size === 0) this.#pauses.delete(tenant);
  }
}

/** What is known of each tenant's part of the quota. Calls reserve as they leave while it is ample, else in advance. */
class TenantSupply {
  /** When (performance.now()) the quota counts as ample again; 0 after a call got all its tokens. */
  readonly #ampleFrom = new Map<string, number>();

  of(tenant: string): 'unknown' | 'ample' | 'scarce' {
    const from = this.#ampleFrom.get(tenant);
    if (from === undefined) return 'unknown';
    return performance.now() < from ? 'scarce' : 'ample';
  }

  noteAmple(tenant: string): void {
    if (!this.#ampleFrom.has(tenant)) this.#ampleFrom.set(tenant, 0);
  }

  noteScarce(tenant: string): void {
    this.#ampleFrom.set(tenant, performance.now() + scarcity);
  }
}

function reservationOf(attempt: Exclude<Attempt, { state: 'waiting' }>): Reservation | undefined {
  return attempt.state === 'reserved' ? attempt.reservation : undefined;
}

/** The queues of a call: one for the quota, and for budgets one per caller, agent and model. */
function queuesOf({ tenant, call }: QuotaRequest): { quota: string | undefined; budget: string } {
  const { clientId, agentId, model, token } = call;
  const budget = JSON.stringify([tenant, clientId, agentId, model]);
  return { quota: token === 'shared' ? tenant : undefined, budget };
}

function ledgerRequestOf(request: QuotaRequest): LedgerRequest {
  const { call, output } = request;
  const { tokens, isBounded } = boundOf(request);
  return { reservation: call.id, inputBound: tokens, isBounded, outputCap: output, begun: startOfRecord(call) };
}

function storedRecord(call: CallStart, end: CallEnd): StoredRecord | undefined {
  return end.usage === 'none' ? undefined : recordOf(call, end);
}

function tokensOf(usage: FailedUsage): { input: number | undefined; output: number | undefined } {
  if (usage === 'none') return { input: 0, output: 0 };
  if (usage === 'unknown') return { input: undefined, output: undefined };
  return { input: usage.inputTokens, output: usage.outputTokens };
}
