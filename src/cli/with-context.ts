import type { FastifyBaseLogger } from 'fastify';
import { type Context, createContext } from '../context/context.ts';
import type { WorkerName } from '../context/foundation.ts';
import type { Config } from '../core/config/config.ts';
import type { SchemaWatch } from '../postgres/schema/watch-schema.ts';
import type { CommandIo } from './command.ts';
import { type CurrentDatabase, closeInTime, withCurrentDatabase } from './with-database.ts';

interface ContextOverrides {
  logger?: FastifyBaseLogger | undefined;
  /** Where programs sign in without a public address. */
  loopbackUrl?: string | undefined;
}

/**
 * Opens and migrates the database of the settings, builds the service on it, runs the work and closes everything. The
 * work must end when the watch does.
 */
export async function withContext<Result>(
  io: CommandIo,
  work: (context: Context, config: Config, watch: SchemaWatch) => Promise<Result>,
  overrides?: ContextOverrides,
): Promise<Result> {
  return await withCurrentDatabase(io, (database) => withContextOn(database, work, overrides));
}

/** The same on an open database. */
export async function withContextOn<Result>(
  { config, url, secretKeys, watch }: CurrentDatabase,
  work: (context: Context, config: Config, watch: SchemaWatch) => Promise<Result>,
  { worker, logger, loopbackUrl }: ContextOverrides & { worker?: WorkerName } = {},
): Promise<Result> {
  const context = await createContext({
    config,
    databaseUrl: url,
    secretKeys,
    worker,
    overrides: { loopbackUrl, ...(logger !== undefined && { logger }) },
  });
  try {
    return await work(context, config, watch);
  } finally {
    await closeInTime(context.close());
  }
}
