import type pg from 'pg';

/**
 * Milliseconds that a server has to end a statement that it was asked to cancel, and to roll back. Both take no time, so a
 * connection without an answer after that is dead.
 */
export const maxSilence = 5_000;

/**
 * Closes the connection after so many milliseconds, unless the caller calls the returned function before. The statement
 * under way then rejects as on any lost connection, and a server that is there rolls its transaction back.
 */
export function closeAfter(client: pg.PoolClient, milliseconds: number): () => void {
  const timer = setTimeout(() => void client.end().catch(() => {}), milliseconds);
  return () => clearTimeout(timer);
}
