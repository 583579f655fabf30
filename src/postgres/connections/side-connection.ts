import type pg from 'pg';
import { createDatabase, type Database } from '../database.ts';
import { createPool } from './pool.ts';

interface SideConnection {
  readonly db: Database;
  /** Closes the connection if it is in use: its statement rejects, and the next one opens a new connection. */
  cut(): void;
  end(): Promise<void>;
}

/**
 * One connection apart from those of requests, for monitoring; it closes after 30 s without use. The server ends a
 * statement after `statementLimit` milliseconds, and callers wait for the connection for as long.
 */
export function createSideConnection(
  url: string,
  options: { applicationName: string; statementLimit: number },
): SideConnection {
  const pool = createPool(url, { ...options, maximum: 1, connectionLimit: options.statementLimit });
  let cut: () => void = () => {};

  async function connect(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    const release = client.release.bind(client);
    let isReleased = false;
    const releaseOnce = (destroy?: boolean | Error) => {
      if (!isReleased) release(destroy);
      isReleased = true;
    };
    client.release = releaseOnce;
    // The driver closes the socket of a busy client.
    cut = () => client.release(true);
    return client;
  }

  const db = createDatabase({ connect, end: () => pool.end(), options: {} });
  return { db, cut: () => cut(), end: () => db.destroy() };
}
