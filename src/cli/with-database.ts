import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig } from '../config.ts';
import { createDatabase, type Database } from '../db/database.ts';
import { migrate } from '../db/migrate.ts';
import { createPool } from '../db/pool.ts';
import { packageSchema, readSchema } from '../db/schema/read-schema.ts';
import { type SchemaWatch, watchSchema } from '../db/schema/watch-schema.ts';
import { createSealer, type Sealer } from '../sealing.ts';
import { openDatabase } from './open-database.ts';
import { Stopped } from './stopped.ts';
import { OperatorError, type Surroundings } from './verb.ts';

/** Milliseconds. What has not given its connections back after that time is ended with the process. */
const closingLimit = 5_000;

/** The database of the settings, at the current schema. */
export interface CurrentDatabase {
  config: Config;
  url: string;
  secretKeys: readonly Uint8Array[];
  /** Tells when another version brings the database to its own schema: the work has to end then. */
  watch: SchemaWatch;
}

/** What a command has that works on the database alone, without the service. */
export interface DatabaseTools {
  db: Database;
  sealer: Sealer;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now: () => number;
}

/**
 * Opens the database of the settings, brings it to the current schema, does the work and lets go again. Throws `Stopped`
 * where the process is asked to end before the work begins.
 */
export async function withCurrentDatabase<Result>(
  surroundings: Surroundings,
  work: (database: CurrentDatabase) => Promise<Result>,
): Promise<Result> {
  const config = readConfig(surroundings.environment);
  const database = await openDatabase(config, surroundings.tell);
  try {
    await migrateDatabase(database.url);
    if (surroundings.stop.aborted) throw new Stopped(surroundings.stop.reason);
    const watch = await watchSchema(database.url, await readSchema(packageSchema()));
    try {
      return await work({ config, url: database.url, secretKeys: database.secretKeys, watch });
    } finally {
      await watch.close();
    }
  } finally {
    await database.release();
  }
}

/** The same with connections; they are closed when the work has ended. The work has to end when the watch tells it to. */
export async function withDatabase<Result>(
  surroundings: Surroundings,
  work: (tools: DatabaseTools, watch: SchemaWatch) => Promise<Result>,
): Promise<Result> {
  return await withCurrentDatabase(surroundings, async ({ url, secretKeys, watch }) => {
    const db = createDatabase(createPool(url));
    try {
      return await work({ db, sealer: createSealer(secretKeys), now: () => Date.now() }, watch);
    } finally {
      await closeInTime(db.destroy());
    }
  });
}

/**
 * The same for work that does not listen to signals: when the process is asked to end, or has to because of the schema,
 * the connections are closed under it, so that it gets no further than what it has in hand, and the database is let go
 * of in an orderly way.
 */
export async function withInterruptibleDatabase<Result>(
  surroundings: Surroundings,
  work: (tools: DatabaseTools) => Promise<Result>,
): Promise<Result> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onStop = () => reject(new Stopped(surroundings.stop.reason));
  // Unheard until the work begins: a signal that comes earlier is seen by withCurrentDatabase itself.
  stopped.catch(() => {});
  surroundings.stop.addEventListener('abort', onStop);
  try {
    return await withDatabase(surroundings, (tools, watch) => {
      const outdated = Promise.withResolvers<never>();
      const onOutdated = () => outdated.reject(new OperatorError(String(watch.signal.reason)));
      if (watch.signal.aborted) onOutdated();
      watch.signal.addEventListener('abort', onOutdated);
      return Promise.race([work(tools), stopped, outdated.promise]);
    });
  } finally {
    surroundings.stop.removeEventListener('abort', onStop);
  }
}

/** Waits until what is being closed has ended, for 5 seconds at most. */
export async function closeInTime(closing: Promise<void>): Promise<void> {
  await Promise.race([closing, sleep(closingLimit, undefined, { ref: false })]);
}

/** Runs the migrations on a pool of their own; answers the names of those that ran. */
export async function migrateDatabase(url: string): Promise<string[]> {
  const pool = createPool(url, { applicationName: 'annals migrate', maximum: 2 });
  try {
    return await migrate(pool);
  } finally {
    await pool.end();
  }
}
