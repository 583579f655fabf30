import type pg from 'pg';
import { createDatabase, type Database } from '../database.ts';
import { createPool } from './pool.ts';

/** A connection beside those of requests, for statements that look after the service. */
export interface SideConnection {
  readonly db: Database;
  /** Closes the connection at once if it is in use: its statement rejects, and the next one opens another connection. */
  cut(): void;
  end(): Promise<void>;
}

/**
 * At most one connection, which closes after 30 seconds without use. The server ends a statement after `statementLimit`
 * milliseconds; a caller waits for the connection for as long.
 */
export function createSideConnection(
  url: string,
  options: { applicationName: string; statementLimit: number },
): SideConnection {
  const pool = createPool(url, { ...options, maximum: 1, connectionLimit: options.statementLimit });
  let cut: () => void = () => {};

  async function connect(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    const giveBack = client.release.bind(client);
    let isGiven = false;
    const giveBackOnce = (destroy?: boolean | Error) => {
      if (!isGiven) giveBack(destroy);
      isGiven = true;
    };
    client.release = giveBackOnce;
    // The driver closes the socket of a client that is still at work.
    cut = () => client.release(true);
    return client;
  }

  const db = createDatabase({ connect, end: () => pool.end(), options: {} });
  return { db, cut: () => cut(), end: () => db.destroy() };
}
