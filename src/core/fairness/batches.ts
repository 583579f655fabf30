/** Items of a batch. */
export const maxBatch = 256;

interface Pending<Item, Result> {
  item: Item;
  resolve(result: Result): void;
  reject(error: unknown): void;
}

/**
 * Runs work for many callers of a tenant at once: items that come while a batch of their tenant runs go with the next one, so
 * no result is older than its call. `run` returns the results in the order of the items.
 *
 * @example
 * const find = createBatches((tenant, ids) => readByIds(db, tenant, ids));
 * const document = await find('acme', 'a');
 */
export function createBatches<Item, Result>(
  run: (tenant: string, items: readonly Item[]) => Promise<readonly Result[]>,
): (tenant: string, item: Item) => Promise<Result> {
  /** The items that wait for the next batch. The entry exists while a batch of the tenant runs. */
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
