import { Stop } from '../stop-signal.ts';
import { unlessAborted } from './deadline.ts';
import { currentWork, doWork, type WorkOptions } from './work.ts';

/** A read that several callers wait for. It is cancelled in the database when the last of them is gone. */
export class SharedReading<Result> {
  readonly #reading: Promise<Result>;
  readonly #abandoned = new Stop();
  #waiting = 0;
  #state: 'reading' | 'read' | 'lost' = 'reading';

  /** `timeLimit`: milliseconds of the whole read. */
  constructor(options: WorkOptions & { readonly timeLimit?: number | undefined }, read: () => Promise<Result>) {
    this.#reading = doWork({ ...options, signal: this.#abandoned }, read);
    this.#reading.then(
      () => {
        if (this.#state === 'reading') this.#state = 'read';
      },
      () => {
        this.#state = 'lost';
      },
    );
  }

  /** Whether it has no result: it failed, or all callers are gone. */
  get isLost(): boolean {
    return this.#state === 'lost';
  }

  /** The result, unless the caller's work is aborted before. */
  async result(): Promise<Result> {
    this.#waiting += 1;
    try {
      return await unlessAborted(this.#reading, currentWork()?.signal);
    } finally {
      this.#waiting -= 1;
      if (this.#waiting === 0 && this.#state === 'reading') {
        this.#state = 'lost';
        this.#abandoned.abort(new Error('all callers are gone'));
      }
    }
  }
}

/** Maximum items of a batch. */
export const maxBatch = 256;

interface Pending<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Batches calls of a tenant: items that arrive while a batch of their tenant runs join the next one, so no result is
 * older than its call. `run` returns the results in the order of the items.
 *
 * @example
 * const find = createBatches((tenant, ids) => readByIds(db, tenant, ids));
 * const document = await find('acme', 'a');
 */
export function createBatches<Item, Result>(
  run: (tenant: string, items: readonly Item[]) => Promise<readonly Result[]>,
): (tenant: string, item: Item) => Promise<Result> {
  /** Items for the next batch. A tenant has an entry while a batch of it runs. */
  const waiting = new Map<string, Pending<Item, Result>[]>();

  async function work(tenant: string, items: Pending<Item, Result>[]): Promise<void> {
    while (items.length > 0) {
      const batch = items.splice(0, maxBatch);
      try {
        const results = await run(
          tenant,
          batch.map(({ item }) => item),
        );
        for (const [index, result] of results.entries()) batch[index]?.resolve(result);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    waiting.delete(tenant);
  }

  return (tenant, item) =>
    new Promise((resolve, reject) => {
      const items = waiting.get(tenant);
      if (items !== undefined) {
        items.push({ item, resolve, reject });
        return;
      }
      const fresh = [{ item, resolve, reject }];
      waiting.set(tenant, fresh);
      void work(tenant, fresh);
    });
}
