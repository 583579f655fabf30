/** Rows of changes have no time of their own, so the age of a row counts from when it was first seen as the oldest. */
export class AgeOfOldest {
  #seen = new Map<string, { oldest: number; since: number }>();

  seconds(pending: readonly { tenant: string; oldest: number }[]): number {
    const now = performance.now();
    const seen = new Map<string, { oldest: number; since: number }>();
    for (const { tenant, oldest } of pending) {
      const before = this.#seen.get(tenant);
      seen.set(tenant, before?.oldest === oldest ? before : { oldest, since: now });
    }
    this.#seen = seen;
    return Math.max(0, ...[...seen.values()].map(({ since }) => (now - since) / 1000));
  }
}
