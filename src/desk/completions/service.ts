import type { FastifyBaseLogger } from 'fastify';
import type { Config } from '../../core/config/config.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import type { Statements } from '../../postgres/statements.ts';
import { type CallTimes, defaultCallTimes } from '../../providers/deadline.ts';
import type { LanguageModels } from '../../providers/port.ts';
import {
  createProviderCaller,
  type ProviderCaller,
  type ProviderCallerOptions,
} from '../../providers/provider-caller.ts';
import { type Complete, createComplete, type ProviderTokens } from './complete.ts';
import { createIdempotency, type Idempotency } from './idempotency.ts';
import { Quota, type QuotaOptions } from './quota.ts';

/** The parts of completions, built once per process. */
export interface Completions {
  complete: Complete;
  idempotency: Idempotency;
  quota: Quota;
  tokens: ProviderTokens;
  /** Calls providers, also for other modules. */
  caller: ProviderCaller;
}

/** Milliseconds (contract: completions). */
export interface CompletionTimes {
  provider: CallTimes;
  /** The max. wait for free quota. */
  quotaWait: number;
  /** Milliseconds of an MCP call. */
  toolCall?: number;
}

export const defaultTimes: CompletionTimes = { provider: defaultCallTimes, quotaWait: 60_000 };

export function createCompletions(options: {
  db: Database;
  /** Connections reserved from slow work, used to write the quota. */
  vital: { pool: Statements; db: Database };
  sealer: Sealer;
  logger: FastifyBaseLogger;
  languageModels: LanguageModels;
  config: Pick<Config, 'sharedProviderToken' | 'completionModel' | 'completionMaxTokens' | 'completionDrain'>;
  ownToken: ProviderTokens['own'];
  findPrice: ProviderCallerOptions['findPrice'];
  makersOf: ProviderCallerOptions['makersOf'];
  /** Milliseconds since 1970. */
  now: () => number;
  times?: CompletionTimes | undefined;
  onRefusal?: QuotaOptions['onRefusal'];
}): Completions {
  const {
    db,
    vital,
    sealer,
    logger,
    languageModels,
    config,
    ownToken,
    findPrice,
    makersOf,
    now,
    times = defaultTimes,
    onRefusal,
  } = options;
  const quota = new Quota({ ...vital, logger, maxWait: times.quotaWait, onRefusal });
  const tokens = { own: ownToken, shared: config.sharedProviderToken };
  const model = config.completionModel;
  const caller = createProviderCaller({
    languageModels,
    ledger: quota,
    shared: { token: tokens.shared, model, maxTokens: config.completionMaxTokens },
    findPrice,
    makersOf,
    now,
    times: times.provider,
    drain: config.completionDrain,
    logger,
  });
  const complete = createComplete({ caller, tokens, model, logger });
  return { complete, idempotency: createIdempotency({ db, sealer, logger }), quota, tokens, caller };
}
