import { createBatches } from '../../core/concurrency/batches.ts';
import type { Decision, LedgerBatch, Sending, Settlement, StoredRecord, Want } from './quota-store.ts';

/**
 * Sends quota changes to the database, one batch of a tenant at a time. All calls of a tenant change one row. Without
 * batches each call would hold a connection while it waits for that row.
 */
export interface QuotaLedger {
  /** The reservation is not durable yet. */
  reserve(tenant: string, want: Want): Promise<Decision>;
  /** Whether the call of the reservation may leave now. It is durable then. */
  send(tenant: string, sending: Sending): Promise<boolean>;
  settle(tenant: string, settlement: Settlement): Promise<void>;
  /** Whether a call with the tenant's own key has to reserve: the tenant has budgets. No answer is older than its question. */
  hasBudgets(tenant: string): Promise<boolean>;
  /** Writes the record of a call that reserved nothing. */
  record(tenant: string, call: StoredRecord): Promise<void>;
}

export interface LedgerDatabase {
  /** Returns the decisions in the order of the wants. They are not durable yet. */
  apply(tenant: string, batch: LedgerBatch): Promise<readonly Decision[]>;
  /** Returns whether each may leave, in their order. Those that may are durable. */
  send(tenant: string, sendings: readonly Sending[]): Promise<readonly boolean[]>;
  hasBudgets(tenant: string): Promise<boolean>;
  write(tenant: string, records: readonly StoredRecord[]): Promise<void>;
}

export function createLedger(database: LedgerDatabase): QuotaLedger {
  const changes = createBatches<{ settlement: Settlement } | { want: Want }, Decision | undefined>(
    async (tenant, items) => {
      const settlements = items.flatMap((item) => ('settlement' in item ? [item.settlement] : []));
      const wants = items.flatMap((item) => ('want' in item ? [item.want] : []));
      const decisions = [...(await database.apply(tenant, { settlements, wants }))];
      return items.map((item) => ('want' in item ? decisions.shift() : undefined));
    },
  );
  // They change no row, so they wait for no reservation.
  const records = createBatches<StoredRecord, void>(async (tenant, items) => {
    await database.write(tenant, items);
    return items.map(() => undefined);
  });
  // A batch of its own: it waits for the disk, and the next changes do not.
  const sendings = createBatches<Sending, boolean>((tenant, items) => database.send(tenant, items));
  const looks = createBatches<undefined, boolean>(async (tenant, items) => {
    const has = await database.hasBudgets(tenant);
    return items.map(() => has);
  });
  return {
    hasBudgets: (tenant) => looks(tenant, undefined),

    async reserve(tenant, want) {
      const decision = await changes(tenant, { want });
      if (decision === undefined) throw new Error('the quota gave no decision');
      return decision;
    },

    send: sendings,

    async settle(tenant, settlement) {
      await changes(tenant, { settlement });
    },

    record: records,
  };
}
