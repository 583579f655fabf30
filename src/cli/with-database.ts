import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type Config, readConfig } from '../core/config/config.ts';
import { OperatorError } from '../core/errors.ts';
import { createSealer, type Sealer } from '../core/sealing.ts';
import { onceStarted } from '../postgres/connections/once-started.ts';
import { createPool } from '../postgres/connections/pool.ts';
import { createDatabase, type Database } from '../postgres/database.ts';
import { isDistributed } from '../postgres/is-distributed.ts';
import { migrate } from '../postgres/migrate/migrate.ts';
import { readPackageSchema, type Schema } from '../postgres/schema/read-schema.ts';
import { type SchemaWatch, watchSchema } from '../postgres/schema/watch-schema.ts';
import { type CommandIo, Stopped } from './command.ts';
import { openDatabase } from './open-database.ts';

/** Milliseconds. The end of the process closes connections that are still in use then. */
const closingLimit = 5_000;

/** The database of the settings, at the current schema. */
export interface CurrentDatabase {
  config: Config;
  url: string;
  secretKeys: readonly Uint8Array[];
  /** Aborted when another version migrates the database. The work must then end. */
  watch: SchemaWatch;
}

/** For commands that use the database without the service. */
interface DatabaseTools {
  db: Database;
  /** The connections of `db`. */
  pool: pg.Pool;
  url: string;
  sealer: Sealer;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now: () => number;
}

/**
 * Opens and migrates the database of the settings, runs the work and closes the database. Throws `Stopped` on a signal
 * before the work starts.
 */
export async function withCurrentDatabase<Result>(
  io: CommandIo,
  work: (database: CurrentDatabase) => Promise<Result>,
): Promise<Result> {
  return await withMigratedDatabase(io, (database) => withWatch(database, work));
}

export type MigratedDatabase = Omit<CurrentDatabase, 'watch'>;

/** `withCurrentDatabase` without the watch, for work that only starts other processes. */
export async function withMigratedDatabase<Result>(
  io: CommandIo,
  work: (database: MigratedDatabase) => Promise<Result>,
): Promise<Result> {
  const config = readConfig(io.environment);
  const opened = await onceStarted(() => openDatabase(config, io.tell), {
    signal: io.stop,
    onWait: () => io.tell('annals: the database is starting. Annals waits for it'),
  });
  if (opened === undefined) throw new Stopped(io.stop.reason);
  const { url, secretKeys, release } = opened;
  try {
    await migrateDatabase(url);
    if (io.stop.aborted) throw new Stopped(io.stop.reason);
    return await work({ config, url, secretKeys });
  } finally {
    await release();
  }
}

/** Runs work that must end when another version migrates the database. */
export async function withWatch<Result>(
  database: MigratedDatabase,
  work: (database: CurrentDatabase) => Promise<Result>,
): Promise<Result> {
  const watch = await watchSchema(database.url, readCurrentSchema);
  try {
    return await work({ ...database, watch });
  } finally {
    await watch.close();
  }
}

/** `withCurrentDatabase` with connections, which it closes after the work. */
export async function withDatabase<Result>(
  io: CommandIo,
  work: (tools: DatabaseTools, watch: SchemaWatch) => Promise<Result>,
): Promise<Result> {
  return await withCurrentDatabase(io, async ({ url, secretKeys, watch }) => {
    const pool = createPool(url);
    const db = createDatabase(pool);
    try {
      return await work({ db, pool, url, sealer: createSealer(secretKeys), now: () => Date.now() }, watch);
    } finally {
      await closeInTime(db.destroy());
    }
  });
}

/**
 * `withDatabase` for work that does not listen to signals. On a signal, or when the schema changes, this function
 * closes the connections, which ends the work after its current step.
 */
export async function withInterruptibleDatabase<Result>(
  io: CommandIo,
  work: (tools: DatabaseTools) => Promise<Result>,
): Promise<Result> {
  return await withDatabase(io, (tools, watch) =>
    Promise.race([
      work(tools),
      failureOn(io.stop, (signal) => new Stopped(signal)),
      failureOn(watch.signal, (reason) => new OperatorError(String(reason))),
    ]),
  );
}

/** Rejects when the signal is aborted. */
function failureOn(signal: AbortSignal, errorOf: (reason: AbortSignal['reason']) => Error): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = () => reject(errorOf(signal.reason));
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/** Waits for connections to close, for at most 5 seconds. */
export async function closeInTime(closing: Promise<void>): Promise<void> {
  await Promise.race([closing, sleep(closingLimit, undefined, { ref: false })]);
}

/** Runs work on connections of its own, which it closes afterwards. */
export async function withPool<Result>(
  url: string,
  options: { applicationName: string; maximum: number },
  work: (pool: pg.Pool) => Promise<Result>,
): Promise<Result> {
  const pool = createPool(url, options);
  try {
    return await work(pool);
  } finally {
    await closeInTime(pool.end());
  }
}

/** The schema of this version: some routines differ in a distributed database. */
async function readCurrentSchema(pool: pg.Pool): Promise<Schema> {
  return await readPackageSchema((await isDistributed(pool)) ? 'distributed' : 'single');
}

/** Returns the names of the migrations that ran. */
export async function migrateDatabase(url: string): Promise<string[]> {
  return await withPool(url, { applicationName: 'annals migrate', maximum: 2 }, (pool) => migrate(pool));
}
