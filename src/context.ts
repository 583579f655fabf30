import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import { createFindPage, type FindPage } from './changelog/find-page.ts';
import type { Config } from './config.ts';
import { type Configuration, createConfiguration } from './configuration/service.ts';
import { createDatabase, type Database } from './db/database.ts';
import { createPool } from './db/pool.ts';
import { createLogger } from './http/logger.ts';
import { readModels } from './models/read-models.ts';
import type { ModelList } from './models/schemas.ts';
import { createOAuthService, type OAuthService } from './oauth/service.ts';
import { RegexMatcherPool } from './query/regex-pool.ts';
import { createSealer, type Sealer } from './sealing.ts';

export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
}

/** What the rooms are made of and given, built once for a process. */
export interface Context {
  config: Config;
  clock: Clock;
  logger: FastifyBaseLogger;
  pool: pg.Pool;
  db: Database;
  sealer: Sealer;
  oauth: OAuthService;
  findPage: FindPage;
  configuration: Configuration;
  models: ModelList;
  /** Lets go of everything the context made; what is in flight finishes first. */
  close(): Promise<void>;
}

export interface ContextOptions {
  config: Config;
  databaseUrl: string;
  /** 32 bytes each; the first seals, all open. */
  secretKeys: readonly Uint8Array[];
  /** For tests: instead of what is made from the settings. */
  overrides?: { clock?: Clock; logger?: FastifyBaseLogger };
}

/** Builds everything that lives as long as the process. The database has to be migrated. */
export async function createContext(options: ContextOptions): Promise<Context> {
  const { config, databaseUrl, secretKeys, overrides = {} } = options;
  const clock = overrides.clock ?? { now: () => Date.now() };
  const logger = overrides.logger ?? createLogger(config.logLevel);
  const sealer = createSealer(secretKeys);
  const models = await readModels(config.modelsFile);
  const pool = createPool(databaseUrl, {
    onLostConnection: (error) => logger.warn({ err: error }, 'a connection to the database was lost'),
  });
  const db = createDatabase(pool);
  const regexes = new RegexMatcherPool();
  try {
    const oauth = await createOAuthService({
      db,
      sealer,
      baseUrl: config.baseUrl,
      now: () => clock.now(),
      onUnreadableKey: (kid) => logger.warn({ kid }, 'no secret key opens this signing key; its tokens are refused'),
    });
    const findPage = createFindPage({ pool, db, regexes, now: () => clock.now() });
    const configuration = createConfiguration({ db, sealer, now: () => clock.now() });
    const close = async () => {
      await regexes.close();
      await db.destroy();
    };
    return { config, clock, logger, pool, db, sealer, oauth, findPage, configuration, models, close };
  } catch (error) {
    await db.destroy();
    throw error;
  }
}
