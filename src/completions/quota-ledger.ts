import type { Decision, Settlement, Want } from './quota-store.ts';

/**
 * Sends quota changes to the database, one batch of a tenant at a time. All calls of a tenant change one row. Without
 * batches each call would hold a connection while it waits for that row.
 */
export interface QuotaLedger {
  reserve(tenant: string, want: Want): Promise<Decision>;
  settle(tenant: string, settlement: Settlement): Promise<void>;
}

export interface Batch {
  settlements: readonly Settlement[];
  wants: readonly Want[];
}

export interface LedgerDatabase {
  /** Returns the decisions in the order of the wants. They are not durable yet. */
  apply(tenant: string, batch: Batch): Promise<readonly Decision[]>;
  /** Makes the applied batches of these tenants durable. */
  makeDurable(tenants: readonly string[]): Promise<void>;
}

interface Pending<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

interface PendingBatch {
  settlements: Pending<Settlement, void>[];
  wants: Pending<Want, Decision>[];
}

const maxAtOnce = 256;

export function createLedger(database: LedgerDatabase): QuotaLedger {
  const durable = createShared(database.makeDurable);
  /** The calls that wait for the next batch. The entry exists while a batch of the tenant runs. */
  const batches = new Map<string, PendingBatch>();

  function enter(tenant: string, write: (batch: PendingBatch) => void): void {
    const batch = batches.get(tenant);
    if (batch !== undefined) {
      write(batch);
      return;
    }
    const fresh: PendingBatch = { settlements: [], wants: [] };
    batches.set(tenant, fresh);
    write(fresh);
    void send(tenant, fresh);
  }

  async function send(tenant: string, batch: PendingBatch): Promise<void> {
    while (batch.settlements.length > 0 || batch.wants.length > 0) {
      const settlements = batch.settlements.splice(0, maxAtOnce);
      const wants = batch.wants.splice(0, maxAtOnce);
      try {
        const decisions = await database.apply(tenant, {
          settlements: settlements.map(({ item }) => item),
          wants: wants.map(({ item }) => item),
        });
        for (const entry of settlements) entry.resolve();
        for (const [index, entry] of wants.entries()) decide(tenant, entry, decisions[index]);
      } catch (error) {
        for (const entry of [...settlements, ...wants]) entry.reject(error);
      }
    }
    batches.delete(tenant);
  }

  /** Waits until the decision is on the disk. The next batch runs meanwhile. */
  function decide(tenant: string, { resolve, reject }: Pending<Want, Decision>, decision: Decision | undefined): void {
    if (decision === undefined) reject(new Error('the quota gave no decision'));
    else if (decision.outcome !== 'reserved') resolve(decision);
    else durable(tenant).then(() => resolve(decision), reject);
  }

  return {
    reserve(tenant, item) {
      return new Promise((resolve, reject) => {
        enter(tenant, ({ wants }) => wants.push({ item, resolve, reject }));
      });
    },
    settle(tenant, item) {
      return new Promise((resolve, reject) => {
        enter(tenant, ({ settlements }) => settlements.push({ item, resolve, reject }));
      });
    },
  };
}

/** Callers that arrive before a run starts share that run, which gets the names of all. Only one run is active at a time. */
function createShared(work: (names: readonly string[]) => Promise<void>): (name: string) => Promise<void> {
  let running: Promise<void> | undefined;
  let next: { promise: Promise<void>; names: Set<string> } | undefined;

  function run(names: readonly string[]): Promise<void> {
    const mine = work(names).finally(() => {
      if (running === mine) running = undefined;
    });
    running = mine;
    return mine;
  }

  return (name) => {
    if (running === undefined) return run([name]);
    if (next !== undefined) {
      next.names.add(name);
      return next.promise;
    }
    const names = new Set([name]);
    const promise = running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return run([...names]);
      });
    next = { promise, names };
    return promise;
  };
}
