/** How many short requests of each tenant are under way. */
const underWay = new Map<string, number>();
let all = 0;
const listeners = new Set<() => void>();

/**
 * Counts a request that needs the event loop for little, several times and soon: it waits for the database in between.
 * Long computations of other tenants leave it room until the returned function is called; idempotent.
 */
export function beginShortWork(tenant: string): () => void {
  underWay.set(tenant, (underWay.get(tenant) ?? 0) + 1);
  all += 1;
  let isUnderWay = true;
  return () => {
    if (!isUnderWay) return;
    isUnderWay = false;
    all -= 1;
    const left = (underWay.get(tenant) ?? 0) - 1;
    if (left > 0) underWay.set(tenant, left);
    else underWay.delete(tenant);
    if (left === 0) for (const listener of listeners) listener();
  };
}

/** Whether another tenant has a short request under way. */
export function othersHaveShortWork(tenant: string): boolean {
  return all > (underWay.get(tenant) ?? 0);
}

/** Calls the listener each time when a tenant has no short request any more. */
export function onShortWorkEnd(listener: () => void): void {
  listeners.add(listener);
}
