import type { FastifyBaseLogger } from 'fastify';
import { type Release, Semaphore } from '../../core/concurrency/semaphore.ts';
import { AnnalsError } from '../../core/errors.ts';
import { rest } from '../../core/repeat.ts';
import type { Database } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { partsOf } from '../../providers/adapter.ts';
import { type BegunCall, beginOfRecord, type EndOfCall, recordOf } from '../../providers/call-record.ts';
import type { FailedUsage, JsonFormat, Message, Tool, UserPart } from '../../providers/port.ts';
import type { CallLedger, QuotaRequest, Reservation, Tokens } from '../../providers/provider-caller.ts';
import { createLedger } from './quota-ledger.ts';
import {
  applyToQuota,
  chargeExpired,
  dropCharged,
  type QuotaState,
  readQuota,
  reservationWork,
  type StoredRecord,
  sendReserved,
} from './quota-store.ts';
import { createSettlements } from './settlements.ts';

/** The max. tokens of the shared token that a tenant may use in its lifetime (spec: limits). */
export const quotaLimits: Tokens = { input: 3_000_000, output: 1_000_000 };

/** Milliseconds within which the call of a reservation must leave. */
export const defaultUnsentLease = 30_000;

/** A call for a shorter answer is not worth its cost (contract: completions). */
const minOutput = 16;

/** The quota of the shared token, and the records of all calls. Every call with that token reserves, sends and settles. */
export interface Quota extends CallLedger {
  state(tenant: string): Promise<QuotaState>;
  /** Charges the reservations of dead processes, or gives them back where their calls were not sent, for all tenants. */
  upkeep(findTenants: FindTenants): Promise<void>;
  /** Waits, up to a limit, for settlements that the database has not stored yet. */
  close(): Promise<void>;
}

export interface QuotaOptions {
  pool: Statements;
  db: Database;
  logger: FastifyBaseLogger;
  /** Milliseconds; tests use a shorter time. */
  maxWait?: number;
  /** Milliseconds within which the call of a reservation must leave; tests use a shorter time. */
  unsentLease?: number;
  /** For metrics: called for each call that is refused, because the quota is used up or because the wait was too long. */
  onRefusal?: ((reason: 'used_up' | 'reserved') => void) | undefined;
}

// Milliseconds.
const defaultMaxWait = 60_000;
const leaseMargin = 30_000;

const minPause = 20;
const maxPause = 200;
const retryAfter = '5';

export function createQuota(options: QuotaOptions): Quota {
  const { pool, db, logger, maxWait = defaultMaxWait, unsentLease = defaultUnsentLease, onRefusal } = options;
  const ledger = createLedger({
    apply: (tenant, batch) => applyToQuota(pool, tenant, batch, { limits: quotaLimits, minOutput, lease: unsentLease }),
    send: (tenant, sendings) => sendReserved(pool, tenant, sendings),
  });
  /** The first of a tenant's waiting calls tries again and again; the others wait for their turn. */
  const turns = new Semaphore({ maxOfTenant: 1 });
  /** Ends the pause of the tenant's first call. */
  const pauses = new Map<string, AbortController>();
  const settlements = createSettlements(logger);

  async function attempt(request: QuotaRequest): Promise<Reservation | undefined> {
    const { tenant, call, input, output } = request;
    const { id } = call;
    const want = { reservation: id, inputBound: input, outputCap: output, begun: beginOfRecord(call) };
    const decision = await ledger.reserve(tenant, want).catch((error) => {
      // The connection can fail after the database has made the reservation.
      const nothing = { reservation: id, input: 0, output: 0, record: undefined };
      void settlements.settle(() => ledger.settle(tenant, nothing));
      throw error;
    });
    if (decision.outcome === 'exceeded') {
      onRefusal?.('used_up');
      throw quotaExceeded();
    }
    return decision.outcome === 'wait' ? undefined : reservation(request, decision.granted);
  }

  function reservation({ tenant, call, input, maxDuration }: QuotaRequest, granted: number): Reservation {
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
        pauses.get(tenant)?.abort();
        return { input: tokens.input ?? input, output: tokens.output ?? granted };
      },
    };
  }

  async function waitFor(request: QuotaRequest): Promise<Reservation> {
    const { tenant } = request;
    const deadline = new AbortController();
    const timer = setTimeout(() => {
      onRefusal?.('reserved');
      deadline.abort(new QuotaReserved());
    }, maxWait);
    const signal = request.signal === undefined ? deadline.signal : AbortSignal.any([request.signal, deadline.signal]);
    let release: Release | undefined;
    try {
      release = await turns.acquire(tenant, signal);
      for (let pause = minPause; ; pause = Math.min(maxPause, pause * 1.5)) {
        const reserved = await attempt(request);
        if (reserved !== undefined) return reserved;
        // Other processes do not announce the tokens that they return, so every pause is short.
        const settled = new AbortController();
        pauses.set(tenant, settled);
        await rest(pause * (0.5 + Math.random()), AbortSignal.any([signal, settled.signal]));
        pauses.delete(tenant);
        signal.throwIfAborted();
      }
    } finally {
      clearTimeout(timer);
      release?.();
    }
  }

  return {
    async reserve(request) {
      const { tenant } = request;
      const reserved = turns.taken(tenant) > 0 ? undefined : await attempt(request);
      return reserved ?? (await waitFor(request));
    },

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

/**
 * An upper bound of the input tokens. A token has at least one byte. Vendors add some tokens around each message and
 * around the request (contract: completions). Tools and the format of the answer count with all their texts.
 */
export function inputBound(messages: readonly Message[], tools: readonly Tool[] = [], format?: JsonFormat): number {
  const described = [...tools, ...(format === undefined ? [] : [format])].map(
    (text) => Buffer.byteLength(JSON.stringify(text)) + perMessage,
  );
  return [...messages.map(boundOfMessage), ...described].reduce((sum, bound) => sum + bound, perCall);
}

const perMessage = 16;
const perCall = 64;

function boundOfMessage(message: Message): number {
  if (message.role === 'tool') {
    return message.results.reduce(
      (sum, result) => sum + bytesOf(result.id, result.name, result.output) + perMessage,
      0,
    );
  }
  if (message.role === 'user')
    return partsOf(message.content).reduce((sum, part) => sum + boundOfPart(part), perMessage);
  const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
  const bytes = calls.reduce((sum, call) => sum + bytesOf(call.id, call.name, call.input) + perMessage, 0);
  return Buffer.byteLength(message.content) + perMessage + bytes;
}

/** More tokens than any vendor counts for an image: gpt-4o-mini counts 48,169 for a large one. */
export const tokensOfImage = 50_000;

function boundOfPart(part: UserPart): number {
  return part.type === 'text' ? Buffer.byteLength(part.text) : tokensOfImage;
}

function bytesOf(...texts: string[]): number {
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

function storedRecord(call: BegunCall, end: EndOfCall): StoredRecord | undefined {
  return end.usage === 'none' ? undefined : recordOf(call, end);
}

function tokensOf(usage: FailedUsage): { input: number | undefined; output: number | undefined } {
  if (usage === 'none') return { input: 0, output: 0 };
  if (usage === 'unknown') return { input: undefined, output: undefined };
  return { input: usage.inputTokens, output: usage.outputTokens };
}

function quotaExceeded(): AnnalsError {
  return new AnnalsError(
    'quota_exceeded',
    'The quota of the shared provider token is used up. Set providerApiToken to use your own token.',
  );
}

/** The call would fit once others have settled. */
export class QuotaReserved extends AnnalsError {
  constructor() {
    super(
      'service_unavailable',
      'Calls in progress have reserved the rest of the quota of the shared provider token.',
      { headers: { 'Retry-After': retryAfter } },
    );
  }
}
