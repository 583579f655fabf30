import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, readConfig } from '../config.ts';
import { type Context, createContext } from '../context.ts';
import { migrate } from '../db/migrate.ts';
import { createPool } from '../db/pool.ts';
import { packageSchema, readSchema } from '../db/schema/read-schema.ts';
import { type SchemaWatch, watchSchema } from '../db/schema/watch-schema.ts';
import { openDatabase } from './open-database.ts';
import { Stopped } from './stopped.ts';
import { OperatorError, type Surroundings } from './verb.ts';

// What has not given its connections back after so many milliseconds is ended with the process.
const closingLimit = 5_000;

/**
 * Opens the database of the settings, brings it to the current schema, does the work and lets go again. The work has to
 * end when the watch tells it to.
 */
export async function withContext<Result>(
  surroundings: Surroundings,
  work: (context: Context, config: Config, watch: SchemaWatch) => Promise<Result>,
): Promise<Result> {
  const config = readConfig(surroundings.environment);
  const database = await openDatabase(config, surroundings.tell);
  try {
    await migrateDatabase(database.url);
    if (surroundings.stop.aborted) throw new Stopped(surroundings.stop.reason);
    const watch = await watchSchema(database.url, await readSchema(packageSchema()));
    try {
      const context = await createContext({ config, databaseUrl: database.url, secretKeys: database.secretKeys });
      try {
        return await work(context, config, watch);
      } finally {
        await Promise.race([context.close(), sleep(closingLimit, undefined, { ref: false })]);
      }
    } finally {
      await watch.close();
    }
  } finally {
    await database.release();
  }
}

/**
 * The same for work that does not listen to signals: when the process is asked to end, or has to because of the schema,
 * the context is closed under it, so that it gets no further than what it has in hand, and the database is let go of in
 * an orderly way.
 */
export async function withInterruptibleContext<Result>(
  surroundings: Surroundings,
  work: (context: Context, config: Config) => Promise<Result>,
): Promise<Result> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onStop = () => reject(new Stopped(surroundings.stop.reason));
  // Unheard until the work begins: a signal that comes earlier is seen by withContext itself.
  stopped.catch(() => {});
  surroundings.stop.addEventListener('abort', onStop);
  try {
    return await withContext(surroundings, (context, config, watch) => {
      const outdated = Promise.withResolvers<never>();
      const onOutdated = () => outdated.reject(new OperatorError(String(watch.signal.reason)));
      if (watch.signal.aborted) onOutdated();
      watch.signal.addEventListener('abort', onOutdated);
      return Promise.race([work(context, config), stopped, outdated.promise]);
    });
  } finally {
    surroundings.stop.removeEventListener('abort', onStop);
  }
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
