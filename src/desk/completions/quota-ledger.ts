import { createBatches } from '../../core/fairness/shared-work.ts';
import type {
  Decision,
  LedgerBatch,
  LedgerRequest,
  LedgerSendRequest,
  Sending,
  Settlement,
  StoredRecord,
} from './quota-store.ts';

/**
 * Sends quota changes to the database, one batch per tenant at a time. All calls of a tenant change one row: without
 * batches each would hold a connection while it waits for that row.
 */
export interface QuotaLedger {
  /** The reservation is not durable yet. */
  reserve(tenant: string, request: LedgerRequest): Promise<Decision>;
  /** Whether the reserved call may leave; it is durable then. */
  send(tenant: string, sending: Sending): Promise<boolean>;
  /** Both in one step, if the quota suffices and no budget applies. False: nothing is reserved. */
  reserveSent(tenant: string, request: LedgerSendRequest): Promise<boolean>;
  settle(tenant: string, settlement: Settlement): Promise<void>;
  /** Whether a call with the tenant's own key must reserve, because there are budgets. Never older than the call. */
  hasBudgets(tenant: string): Promise<boolean>;
  /** Writes the record of a call without a reservation. */
  record(tenant: string, call: StoredRecord): Promise<void>;
}

export interface LedgerDatabase {
  /** Returns the decisions in the order of the requests. They are not durable yet. */
  apply(tenant: string, batch: LedgerBatch): Promise<readonly Decision[]>;
  /** Returns, in order, whether each may leave. Those that may are durable. */
  send(tenant: string, sendings: readonly Sending[]): Promise<readonly boolean[]>;
  /** Returns whether it is reserved, durably. */
  reserveSent(tenant: string, request: LedgerSendRequest): Promise<boolean>;
  hasBudgets(tenant: string): Promise<boolean>;
  write(tenant: string, records: readonly StoredRecord[]): Promise<void>;
}

export function createLedger(database: LedgerDatabase): QuotaLedger {
  const changes = createBatches<Change, Decision | 'sent' | undefined>(async (tenant, items) => {
    const [first, ...others] = items;
    // The others would wait for the disk with it, so it takes both steps at once only if alone.
    if (first !== undefined && 'leaving' in first && others.length === 0) {
      return [(await database.reserveSent(tenant, first.leaving)) ? 'sent' : undefined];
    }
    const settlements = items.flatMap((item) => ('settlement' in item ? [item.settlement] : []));
    const requests = items.flatMap((item) => requestOf(item) ?? []);
    const decisions = [...(await database.apply(tenant, { settlements, requests }))];
    return items.map((item) => (requestOf(item) === undefined ? undefined : decisions.shift()));
  });
  // They change no row, so they wait for no reservation.
  const records = createBatches<StoredRecord, void>(async (tenant, items) => {
    await database.write(tenant, items);
    return items.map(() => undefined);
  });
  // A separate batch: it waits for the disk, which the next changes do not.
  const sendings = createBatches<Sending, boolean>((tenant, items) => database.send(tenant, items));
  const looks = createBatches<undefined, boolean>(async (tenant, items) => {
    const has = await database.hasBudgets(tenant);
    return items.map(() => has);
  });
  return {
    hasBudgets: (tenant) => looks(tenant, undefined),

    async reserve(tenant, request) {
      const decision = await changes(tenant, { request });
      if (decision === undefined || decision === 'sent') throw new Error('the quota gave no decision');
      return decision;
    },

    send: sendings,

    async reserveSent(tenant, leaving) {
      const decision = await changes(tenant, { leaving });
      if (decision === 'sent') return true;
      if (decision?.outcome !== 'reserved') return false;
      const { reservation, outputCap } = leaving;
      if (decision.granted === outputCap && (await sendings(tenant, leaving))) return true;
      await changes(tenant, { settlement: { reservation, input: 0, output: 0, record: undefined } });
      return false;
    },

    async settle(tenant, settlement) {
      await changes(tenant, { settlement });
    },

    record: records,
  };
}

type Change =
  | { readonly settlement: Settlement }
  | { readonly request: LedgerRequest }
  | { readonly leaving: LedgerSendRequest };

function requestOf(change: Change): LedgerRequest | undefined {
  if ('request' in change) return change.request;
  return 'leaving' in change ? change.leaving : undefined;
}
