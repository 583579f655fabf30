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
import { createLedger } from './quota-ledger.ts';
import {
  applyToQuota,
  chargeExpired,
  type Decision,
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
import { createSettlements } from './settlements.ts';

/** The max. tokens of the shared token per tenant, ever (spec: limits). */
export const quotaLimits: Tokens = { input: 3_000_000, output: 1_000_000 };

/** Milliseconds within which a reserved call must leave. */
export const defaultUnsentLease = 30_000;

/** Below this, an answer is not worth its cost (contract: completions). */
const minOutput = 16;

/** The quota of the shared token, budget reservations, and the records of all calls. */
export interface Quota extends CallLedger {
  state(tenant: string): Promise<QuotaState>;
  /** For all tenants, charges the reservations of dead processes, or releases those whose calls were not sent. */
  upkeep(findTenants: FindTenants): Promise<void>;
  /** Waits, up to a limit, for settlements not yet stored. */
  close(): Promise<void>;
}

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

/** Milliseconds for which a tenant's calls reserve in advance, once reserving on sending has failed. */
const scarcity = 60_000;

const minPause = 20;
const maxPause = 200;

export function createQuota(options: QuotaOptions): Quota {
  const { pool, db, logger, maxWait = defaultMaxWait, unsentLease = defaultUnsentLease, onRefusal } = options;
  const ledger = createLedger({
    apply: (tenant, batch) => applyToQuota(pool, tenant, batch, { limits: quotaLimits, minOutput, lease: unsentLease }),
    send: (tenant, sendings) => sendReserved(pool, tenant, sendings),
    reserveSent: (tenant, ledgerRequest) => reserveSent(pool, tenant, ledgerRequest, quotaLimits),
    hasBudgets: (tenant) => hasBudgets(pool, tenant),
    write: (tenant, records) => writeRecords(pool, tenant, records),
  });
  /** Only the first waiting call of a queue retries; the others wait for their turn. */
  const turns = new Semaphore({ maxOfTenant: 1 });
  /** Interrupts the pauses of the first calls of a tenant's queues. */
  const pauses = new Map<string, Set<AbortController>>();
  const settlements = createSettlements(logger);
  /** By tenant: when (performance.now()) calls reserve on sending again; 0 after a call got all its tokens. */
  const reserveOnSendFrom = new Map<string, number>();

  async function attempt(request: QuotaRequest): Promise<Reservation | 'free' | Waiting> {
    const { tenant, call, output } = request;
    const ledgerRequest = ledgerRequestOf(request);
    const { reservation: id, inputBound: input } = ledgerRequest;
    const decision = await ledger.reserve(tenant, ledgerRequest).catch((error) => {
      // The connection can fail after the database has reserved.
      const nothing = { reservation: id, input: 0, output: 0, record: undefined };
      void settlements.settle(() => ledger.settle(tenant, nothing));
      throw error;
    });
    const isAmple = decision.outcome === 'reserved' && decision.granted === output;
    if (isAmple && call.token === 'shared' && !reserveOnSendFrom.has(tenant)) reserveOnSendFrom.set(tenant, 0);
    return outcomeOf(decision, request, input);
  }

  function outcomeOf(decision: Decision, request: QuotaRequest, input: number): Reservation | 'free' | Waiting {
    switch (decision.outcome) {
      case 'reserved':
        return reservation(request, input, decision.granted);
      case 'free':
        return 'free';
      case 'wait':
        return { waitsFor: decision.budget };
      case 'exceeded':
        onRefusal?.('used_up');
        throw quotaExceeded();
      default:
        if (decision.outcome === 'over') onRefusal?.('budget');
        throw refusedByBudget(decision);
    }
  }

  function reservation({ tenant, call, maxDuration }: QuotaRequest, input: number, granted: number): Reservation {
    return {
      output: granted,
      send: () => ledger.send(tenant, { reservation: call.id, lease: maxDuration + leaseMargin }),
      async settle(end) {
        const tokens = tokensOf(end.usage);
        const settlement = { reservation: call.id, ...tokens, record: storedRecord(call, end) };
        if ((tokens.input ?? 0) > input || (tokens.output ?? 0) > granted) {
          logger.warn({ tenant, reserved: { input, output: granted }, tokens }, 'a provider counted more than its cap');
        }
        await settlements.settle(() => ledger.settle(tenant, settlement));
        for (const pause of pauses.get(tenant) ?? []) pause.abort();
        return { input: tokens.input ?? input, output: tokens.output ?? granted };
      },
    };
  }

  function reserveOnSend(request: QuotaRequest): Reservation | undefined {
    const { tenant, call, output, maxDuration } = request;
    const from = reserveOnSendFrom.get(tenant);
    if (call.token !== 'shared' || from === undefined || performance.now() < from) return undefined;
    const ledgerRequest = ledgerRequestOf(request);
    const { budget } = queuesOf(request);
    const reserved = reservation(request, ledgerRequest.inputBound, output);
    let mayBeReserved = false;
    return {
      output,
      async send() {
        // Calls that wait for the quota, or for a budget of this caller, agent and model, come first.
        if (turns.taken(tenant) > 0 || turns.taken(budget) > 0) return false;
        mayBeReserved = true;
        mayBeReserved = await ledger.reserveSent(tenant, { ...ledgerRequest, lease: maxDuration + leaseMargin });
        if (!mayBeReserved) reserveOnSendFrom.set(tenant, performance.now() + scarcity);
        return mayBeReserved;
      },
      async settle(end) {
        return mayBeReserved ? await reserved.settle(end) : { input: 0, output: 0 };
      },
    };
  }

  async function pauseFor(tenant: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    const settled = new AbortController();
    const ofTenant = pauses.getOrInsertComputed(tenant, () => new Set()).add(settled);
    await rest(milliseconds, AbortSignal.any([signal, settled.signal]));
    ofTenant.delete(settled);
    if (ofTenant.size === 0) pauses.delete(tenant);
  }

  async function waitFor(request: QuotaRequest, queue: string, { waitsFor }: Waiting): Promise<Reservation | 'free'> {
    const { tenant } = request;
    const deadline = new AbortController();
    let last = waitsFor;
    const timer = setTimeout(() => {
      onRefusal?.('reserved');
      deadline.abort(new QuotaReserved(last));
    }, maxWait);
    const signal = request.signal === undefined ? deadline.signal : AbortSignal.any([request.signal, deadline.signal]);
    let release: Release | undefined;
    try {
      release = await turns.acquire(queue, signal);
      for (let pause = minPause; ; pause = Math.min(maxPause, pause * 1.5)) {
        const tried = await attempt(request);
        if (tried === 'free' || !('waitsFor' in tried)) return tried;
        last = tried.waitsFor;
        // Other processes do not announce what they release, so pauses are short.
        await pauseFor(tenant, pause * (0.5 + Math.random()), signal);
        signal.throwIfAborted();
      }
    } finally {
      clearTimeout(timer);
      release?.();
    }
  }

  /** The queues of a call: one for the quota, and for budgets one per caller, agent and model. */
  function queuesOf({ tenant, call }: QuotaRequest): { quota: string | undefined; budget: string } {
    const { clientId, agentId, model, token } = call;
    const budget = JSON.stringify([tenant, clientId, agentId, model]);
    return { quota: token === 'shared' ? tenant : undefined, budget };
  }

  async function reserve(request: QuotaRequest): Promise<Reservation | 'free'> {
    const { quota, budget } = queuesOf(request);
    if (quota !== undefined && turns.taken(quota) > 0) return await waitFor(request, quota, { waitsFor: undefined });
    if (turns.taken(budget) > 0) return await waitFor(request, budget, { waitsFor: undefined });
    const tried = await attempt(request);
    if (tried === 'free' || !('waitsFor' in tried)) return tried;
    return await waitFor(request, tried.waitsFor === undefined ? (quota ?? budget) : budget, tried);
  }

  return {
    async reserve(request) {
      const { tenant, call, hasBudgets: known } = request;
      if (call.token === 'own' && !(known ?? (await ledger.hasBudgets(tenant)))) return undefined;
      const reserved = await reserve(request);
      return reserved === 'free' ? undefined : reserved;
    },

    reserveOnSend,

    async record(tenant, call, end) {
      const record = storedRecord(call, end);
      if (record !== undefined) await settlements.settle(() => ledger.record(tenant, record));
    },

    inputBound,

    async state(tenant) {
      await chargeExpired(db, tenant);
      return await readQuota(db, tenant);
    },

    async upkeep(findTenants) {
      await forEachTenant(await findTenants(reservationWork.expired), (tenant) => chargeExpired(db, tenant));
      await dropCharged(db, findTenants);
    },

    close: () => settlements.close(),
  };
}

/** The call fits once others have settled, within the quota or this budget. */
interface Waiting {
  readonly waitsFor: string | undefined;
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
