/** How long a process that is not heard of counts as alive, and how often it says that it is (milliseconds). */
export const defaultLease = { length: 30_000, heartbeat: 8_000 };

/**
 * Extends a lease at every heartbeat until the returned function is called. A lease is a time in a row: a process that
 * has not extended it is dead, and another one takes up what it had in hand.
 *
 * @example
 * const stop = keepLease(() => extendRequest(db, name), { onError: warn });
 * try { await work(); } finally { stop(); }
 */
export function keepLease(
  extend: () => Promise<unknown>,
  { heartbeat = defaultLease.heartbeat, onError }: { heartbeat?: number; onError: (error: unknown) => void },
): () => void {
  let isExtending = false;
  const timer = setInterval(() => {
    // A database that is slow to answer is not asked a second time meanwhile.
    if (isExtending) return;
    isExtending = true;
    extend()
      .catch(onError)
      .finally(() => {
        isExtending = false;
      });
  }, heartbeat);
  return () => clearInterval(timer);
}
