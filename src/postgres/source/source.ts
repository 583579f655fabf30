import pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import { withSettings } from '../connections/pooler.ts';
import { resolveTls } from '../connections/tls.ts';

/** The database of the application, whose changes are recorded. */
export interface Source {
  readonly url: string;
}

/** The source is unreachable or refuses the connection. The message has neither its URL nor a password. */
export class SourceAwayError extends Error {
  constructor(cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
    // SQLSTATE classes of a server that answered: 28 authorisation, 3D no such database.
    const what = / \((?:28|3D)[0-9A-Z]{3}\)$/.test(code) ? 'refuses' : 'cannot be reached';
    super(`the source ${what}: ${cause instanceof Error ? cause.message : 'unknown'}${code}`, { cause });
    this.name = 'SourceAwayError';
  }
}

/**
 * Settings of PostgreSQL's text output. Capture, triggers and snapshots use them, so that one module
 * (recording/mapping/postgres-types.ts) can read the values of all three.
 */
const textSettings = {
  timezone: 'UTC',
  datestyle: 'ISO,YMD',
  intervalstyle: 'postgres',
  bytea_output: 'hex',
  extra_float_digits: '1',
  xmloption: 'content',
  lc_monetary: 'C',
} as const;

/**
 * PostgreSQL picks functions and operators with the best matching types from all schemas in the path, so in any other
 * schema other roles could shadow its own.
 */
const searchPath = 'pg_catalog, pg_temp';

/** For statements about many tables, compiling takes most of a second. */
const planning = { jit: 'off' } as const;

const url = /^postgres(ql)?:$/;

/** Checks the URL of a source and adds our settings. Throws an OperatorError without the URL. */
export function readSource(text: string): Source {
  const parsed = URL.parse(text);
  if (parsed === null || !url.test(parsed.protocol)) {
    throw new OperatorError('the source must be a URL that begins with postgres:// or postgresql://');
  }
  const settings = { ...textSettings, ...planning, search_path: searchPath };
  return { url: withSettings(text, settings) };
}

/**
 * The use of a connection. `transactions`: only in transactions of beginSource, so that it works behind a pooler, which
 * keeps no settings of a session.
 */
type ConnectionKind = 'statements' | 'transactions' | 'replication';

/**
 * Connects to the source. The caller ends the client. The password comes from the URL, PGPASSWORD or the file of
 * PGPASSFILE, and appears in no error.
 */
export async function connectSource(source: Source, kind: ConnectionKind): Promise<pg.Client> {
  const connectionString = await resolveTls(source.url).catch((error: unknown) => {
    throw error instanceof OperatorError ? error : new SourceAwayError(error);
  });
  const client = new pg.Client({
    connectionString,
    application_name: 'annals',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    ...(kind === 'replication' ? { replication: 'database' } : {}),
    // Values stay as the server wrote them.
    types: { getTypeParser: () => (text: unknown) => text },
  });
  // The running query reports the error. Without a listener, this event would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (error) {
    await client.end().catch(() => {});
    // insufficient_privilege is for the operator: the role may not read the log.
    throw error instanceof pg.DatabaseError && error.code === '42501' ? error : new SourceAwayError(error);
  }
  if (kind === 'statements') await requireSearchPath(client);
  return client;
}

/** Throws an OperatorError, and closes the connection, if the settings of the URL did not reach the server. */
async function requireSearchPath(client: pg.Client): Promise<void> {
  try {
    // A statement that looks up no name.
    const { rows } = await client.query<{ search_path: string }>('show search_path');
    if (rows[0]?.search_path === searchPath) return;
    throw new OperatorError(
      'something before the source, a pooler for instance, drops settings of connections: connect to it directly',
    );
  } catch (error) {
    await client.end().catch(() => {});
    throw error instanceof OperatorError ? error : new SourceAwayError(error);
  }
}

/** Begins a transaction that looks names up only in pg_catalog, also behind a pooler. */
export async function beginSource(client: pg.Client): Promise<void> {
  await client.query(`begin; set local search_path = ${searchPath}; set local jit = ${planning.jit}`);
}

/** Runs the work on a connection for statements, or in a transaction, and closes it. */
export async function withSource<Result>(
  source: Source,
  work: (client: pg.Client) => Promise<Result>,
  kind: Exclude<ConnectionKind, 'replication'> = 'statements',
): Promise<Result> {
  const client = await connectSource(source, kind);
  try {
    if (kind === 'transactions') await beginSource(client);
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
