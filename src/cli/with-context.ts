import type { Config } from '../config.ts';
import { type Context, createContext } from '../context.ts';
import type { SchemaWatch } from '../db/schema/watch-schema.ts';
import type { Surroundings } from './verb.ts';
import { closeInTime, withCurrentDatabase } from './with-database.ts';

/**
 * Opens the database of the settings, brings it to the current schema, builds the whole service on it, does the work and
 * lets go again. The work has to end when the watch tells it to.
 */
export async function withContext<Result>(
  surroundings: Surroundings,
  work: (context: Context, config: Config, watch: SchemaWatch) => Promise<Result>,
): Promise<Result> {
  return await withCurrentDatabase(surroundings, async ({ config, url, secretKeys, watch }) => {
    const context = await createContext({ config, databaseUrl: url, secretKeys });
    try {
      return await work(context, config, watch);
    } finally {
      await closeInTime(context.close());
    }
  });
}
