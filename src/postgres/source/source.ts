import pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import { withSettings } from '../connections/pooler.ts';
import { resolveTls } from '../connections/tls.ts';

/** The database of the application, whose changes are recorded. */
export interface Source {
  readonly url: string;
}

/** The source cannot be reached now, or refuses the connection. The message has neither its URL nor a password. */
export class SourceAwayError extends Error {
  constructor(cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : '';
    // SQLSTATE classes: 28 authorisation, 3D no such database. The server was there.
    const what = / \((?:28|3D)[0-9A-Z]{3}\)$/.test(code) ? 'refuses' : 'cannot be reached';
    super(`the source ${what}: ${cause instanceof Error ? cause.message : 'unknown'}${code}`, { cause });
    this.name = 'SourceAwayError';
  }
}

/**
 * Settings that decide how PostgreSQL writes values as text. Capture, triggers and snapshots all use them, so that one
 * module (recording/mapping/postgres-types.ts) can read the values of all three.
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
 * Where the names of our statements are looked up. PostgreSQL takes the function or operator with the fittest types of all schemas in the
 * path, so that others could put their code before its own if it looked anywhere else.
 */
const searchPath = 'pg_catalog, pg_temp';

/** Statements about 133 tables are estimated so dear that compiling them takes most of a second. */
const planning = { jit: 'off' } as const;

const url = /^postgres(ql)?:$/;

/** Checks the URL of a source and adds the settings that capture and relay rely on. Throws an OperatorError, which does not have the URL. */
export function readSource(text: string): Source {
  const parsed = URL.parse(text);
  if (parsed === null || !url.test(parsed.protocol)) {
    throw new OperatorError('the source must be a URL that begins with postgres:// or postgresql://');
  }
  const settings = { ...textSettings, ...planning, search_path: searchPath };
  return { url: withSettings(text, settings) };
}

/**
 * What a connection is for. `transactions`: its statements run in beginSource's transactions alone, so that it may lead through a pooler,
 * which keeps no settings of a session.
 */
type ConnectionKind = 'statements' | 'transactions' | 'replication';

/**
 * Connects to the source. The caller ends the client. The password comes from the URL, PGPASSWORD or the file of PGPASSFILE, and
 * stands in no error.
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
  // The caller that uses the connection gets the error too. Without a listener, this event would end the process.
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

/** Throws an OperatorError where the settings of the URL did not reach the server. Closes the connection then. */
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

/** Begins a transaction in which the names of our statements are looked up in pg_catalog alone, behind a pooler too. */
export async function beginSource(client: pg.Client): Promise<void> {
  await client.query(`begin; set local search_path = ${searchPath}; set local jit = ${planning.jit}`);
}

/** Runs the work with a connection for statements, or in one transaction of its own, and closes it. */
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
