import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import type { Config } from '../config.ts';
import type { Database } from '../db/database.ts';
import type { LanguageModels } from '../providers/port.ts';
import type { Sealer } from '../sealing.ts';
import { type Complete, createComplete, type ProviderTokens } from './complete.ts';
import { createQuota, type Quota } from './quota.ts';
import { createRepeatable, type Repeatable } from './repeatable.ts';

/** What completions are made of, built once for a process. */
export interface Completions {
  complete: Complete;
  repeatable: Repeatable;
  quota: Quota;
  tokens: ProviderTokens;
}

/** Milliseconds (contract: completions). */
export interface CompletionTimes {
  /** For the provider's whole answer. */
  providerTimeout: number;
  /** For a turn on the quota. */
  quotaWait: number;
}

export const usualTimes: CompletionTimes = { providerTimeout: 60_000, quotaWait: 60_000 };

export function createCompletions(options: {
  pool: pg.Pool;
  db: Database;
  sealer: Sealer;
  logger: FastifyBaseLogger;
  languageModels: LanguageModels;
  config: Pick<Config, 'sharedProviderToken' | 'completionModel' | 'completionMaxTokens'>;
  ownToken: ProviderTokens['own'];
  times?: CompletionTimes | undefined;
}): Completions {
  const { pool, db, sealer, logger, languageModels, config, ownToken, times = usualTimes } = options;
  const quota = createQuota({ pool, db, logger, longestWait: times.quotaWait });
  const tokens = { own: ownToken, shared: config.sharedProviderToken };
  const complete = createComplete({
    languageModels,
    quota,
    tokens,
    model: config.completionModel,
    maxTokens: config.completionMaxTokens,
    timeout: times.providerTimeout,
    logger,
  });
  return { complete, repeatable: createRepeatable({ db, sealer, logger }), quota, tokens };
}
