/**
 * `length`: a process counts as alive for this long after its last heartbeat. `heartbeat`: the time between two
 * heartbeats. Both are in milliseconds.
 */
export const defaultLease = { length: 30_000, heartbeat: 8_000 };

/**
 * Extends a lease at every heartbeat until the caller calls the returned function. A lease is a time in a row. A process
 * that has not extended its lease is dead, and another process continues its work.
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
    // If the database is slow to answer, the process does not send a second heartbeat meanwhile.
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
