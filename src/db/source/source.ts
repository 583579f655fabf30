import pg from 'pg';
import { resolveTls, TlsError } from '../connections/tls.ts';

/** The database of the application, whose changes are recorded. */
export interface Source {
  readonly url: string;
}

/** An error that the operator can correct: at the source, in the mapping or with an option. */
export class SourceError extends Error {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options);
    this.name = 'SourceError';
  }
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
 * module (recording/mapping/postgres-value.ts) can read the values of all three.
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

const url = /^postgres(ql)?:$/;

/** Checks the URL of a source and adds the settings that capture and relay rely on. Throws a SourceError, which does not have the URL. */
export function readSource(text: string): Source {
  const parsed = URL.parse(text);
  if (parsed === null || !url.test(parsed.protocol)) {
    throw new SourceError('the source must be a URL that begins with postgres:// or postgresql://');
  }
  const given = parsed.searchParams.get('options');
  const ours = Object.entries(textSettings).map(([name, value]) => `-c ${name}=${value}`);
  parsed.searchParams.set('options', [...(given === null ? [] : [given]), ...ours].join(' '));
  return { url: parsed.href };
}

/**
 * Connects to the source. The caller ends the client. The password comes from the URL, PGPASSWORD or the file of PGPASSFILE, and
 * stands in no error.
 */
export async function connectSource(source: Source, kind: 'statements' | 'replication'): Promise<pg.Client> {
  const connectionString = await resolveTls(source.url).catch((error: unknown) => {
    throw error instanceof TlsError ? new SourceError(error.message, { cause: error }) : new SourceAwayError(error);
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
  return client;
}

/** Runs the work with a connection for statements and closes it. */
export async function withSource<Result>(
  source: Source,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = await connectSource(source, 'statements');
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
