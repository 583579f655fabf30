import pg from 'pg';
import { isBehindPooler, withoutNames } from './pooler.ts';

export interface PoolOptions {
  /** How the connections name themselves in pg_stat_activity. */
  applicationName?: string;
  /** The most connections of this process; 10 unless told. */
  maximum?: number;
  /** Milliseconds of a statement, and of a transaction in which nothing runs, until the server ends it; left out: none. */
  statementLimit?: number;
  /** Milliseconds of waiting for a connection; 5,000 unless given. */
  connectionLimit?: number;
  /** Told when an idle connection is lost. The pool goes on and makes new ones. */
  onLostConnection?: (error: Error) => void;
}

/** A pool on a PostgreSQL. No connection is made before the first query; waiting for one is limited. */
export function createPool(url: string, options: PoolOptions = {}): pg.Pool {
  const pooled = isBehindPooler(url);
  const pool = new pg.Pool({
    connectionString: url,
    application_name: options.applicationName ?? 'annals',
    max: options.maximum ?? 10,
    connectionTimeoutMillis: options.connectionLimit ?? 5_000,
    // A pooler refuses settings of a session.
    ...(pooled || options.statementLimit === undefined || options.statementLimit === Number.POSITIVE_INFINITY
      ? {}
      : {
          statement_timeout: options.statementLimit,
          idle_in_transaction_session_timeout: options.statementLimit,
        }),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser },
  });
  // A lost connection is an event of daily life; unheard, it would end the process.
  pool.on('error', (error) => {
    // Connections on their way out may yet hear from a server that is on its way out as well.
    if (!pool.ending) options.onLostConnection?.(error);
  });
  // The same for one that is lost while it is checked out and between two queries: the next query reports it.
  pool.on('connect', (client) => {
    client.on('error', () => {});
    if (pooled) withoutNames(client);
  });
  return pool;
}

const parserOf: Record<number, (text: string) => unknown> = {
  [pg.types.builtins.INT8]: parseInt8,
  // As the driver reads it, a date becomes midnight of the machine's time zone: another day in half the world.
  [pg.types.builtins.DATE]: (text) => text,
};

/** int8 is a number: our counts and ids stay far below 2^53, and one that does not fails loudly, never rounded. */
function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`int8 ${text} is beyond the safe integers`);
  return value;
}

function getTypeParser(oid: number, format?: 'text' | 'binary') {
  const own = format === 'binary' ? undefined : parserOf[oid];
  return own ?? pg.types.getTypeParser(oid, format);
}
