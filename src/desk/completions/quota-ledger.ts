import { createBatches } from '../../core/concurrency/batches.ts';
import type { Decision, LeavingWant, LedgerBatch, Sending, Settlement, StoredRecord, Want } from './quota-store.ts';

/**
 * Sends quota changes to the database, one batch of a tenant at a time. All calls of a tenant change one row. Without
 * batches each call would hold a connection while it waits for that row.
 */
export interface QuotaLedger {
  /** The reservation is not durable yet. */
  reserve(tenant: string, want: Want): Promise<Decision>;
  /** Whether the call of the reservation may leave now. It is durable then. */
  send(tenant: string, sending: Sending): Promise<boolean>;
  /** Both at once, where all that is wanted is left and no budget applies. False: nothing is reserved. */
  reserveSent(tenant: string, want: LeavingWant): Promise<boolean>;
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
  /** Returns whether it is reserved, and durable then. */
  reserveSent(tenant: string, want: LeavingWant): Promise<boolean>;
  hasBudgets(tenant: string): Promise<boolean>;
  write(tenant: string, records: readonly StoredRecord[]): Promise<void>;
}

export function createLedger(database: LedgerDatabase): QuotaLedger {
  const changes = createBatches<Change, Decision | 'sent' | undefined>(async (tenant, items) => {
    const [first, ...others] = items;
    // Others would wait with it for the disk, so it does both at once only where it is alone.
    if (first !== undefined && 'leaving' in first && others.length === 0) {
      return [(await database.reserveSent(tenant, first.leaving)) ? 'sent' : undefined];
    }
    const settlements = items.flatMap((item) => ('settlement' in item ? [item.settlement] : []));
    const wants = items.flatMap((item) => wantOf(item) ?? []);
    const decisions = [...(await database.apply(tenant, { settlements, wants }))];
    return items.map((item) => (wantOf(item) === undefined ? undefined : decisions.shift()));
  });
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

type Change = { readonly settlement: Settlement } | { readonly want: Want } | { readonly leaving: LeavingWant };

function wantOf(change: Change): Want | undefined {
  if ('want' in change) return change.want;
  return 'leaving' in change ? change.leaving : undefined;
}
