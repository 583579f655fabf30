import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import { deleteClientWithoutSecret, findClient } from '../access/oauth/clients.ts';
import { createOAuthService, type OAuthService } from '../access/oauth/service.ts';
import { type Console, createConsole } from '../console/service.ts';
import type { Tracer } from '../core/concurrency/trace.ts';
import type { Config } from '../core/config/config.ts';
import { packageFolder, productVersion } from '../core/package-folder.ts';
import { createSealer, type Sealer } from '../core/sealing.ts';
import type { ScopesNow } from '../desk/agents/ports.ts';
import { runQueuedChat } from '../desk/agents/queued-chat.ts';
import { type Agents, createAgents } from '../desk/agents/service.ts';
import { expiredTurns, waitsForSession } from '../desk/agents/turn-store.ts';
import { expiredRequests } from '../desk/completions/idempotent-request-store.ts';
import { reservationWork } from '../desk/completions/quota-store.ts';
import { type Completions, type CompletionTimes, createCompletions } from '../desk/completions/service.ts';
import { jobWork } from '../desk/jobs/queue-store.ts';
import { createJobs, type Jobs } from '../desk/jobs/service.ts';
import { dueMail } from '../desk/mail/mail-store.ts';
import { createMailQueue, type MailQueue } from '../desk/mail/service.ts';
import { readModels } from '../desk/models/read-models.ts';
import type { ModelList } from '../desk/models/schemas.ts';
import { createAnswerQuery } from '../history/answer.ts';
import { createExportHistory } from '../history/export/export-history.ts';
import { createFindPage, type FindPage } from '../history/find-page.ts';
import { createHistoryReads, type HistoryReads } from '../history/history-reads.ts';
import { DictionaryCache, maxNameBytes } from '../history/names/dictionary-cache.ts';
import { unfolded } from '../history/tallies/fold.ts';
import { uncounted } from '../history/tallies/type-backlog.ts';
import { warmUpStatements } from '../history/warm-up.ts';
import { createLogger } from '../http/logger.ts';
import { TenantRate } from '../http/tenant-rate.ts';
import { createTakePortion } from '../http/tenant-rate-store.ts';
import { measureConnections } from '../metrics/connections.ts';
import { Metrics } from '../metrics/metrics.ts';
import { measureProcess } from '../metrics/process.ts';
import { createPaginator, type Paginator } from '../pagination/paginator.ts';
import type { TenantPool } from '../postgres/connections/tenant-pool.ts';
import type { Database } from '../postgres/database.ts';
import { type FindTenants, sharedLook } from '../postgres/tenants/tenants-with.ts';
import { createLanguageModels } from '../providers/language-models.ts';
import { providerCallObserver, quotaRefusalObserver } from '../providers/measured-calls.ts';
import { observedCalls } from '../providers/observed-calls.ts';
import type { LanguageModels } from '../providers/port.ts';
import { createSelfHostedTransport } from '../providers/self-hosted.ts';
import { tracedCalls } from '../providers/traced-calls.ts';
import { createTransport } from '../providers/transport.ts';
import { RegexMatcherPool } from '../query/regex-pool.ts';
import { recordChange } from '../recording/record-change.ts';
import { readNotificationEmail } from '../tenants/configuration/notification-email.ts';
import { type Configuration, createConfiguration } from '../tenants/configuration/service.ts';
import { createDocumentLists } from '../tenants/custom-entities/document-lists.ts';
import { createSchemaChecker } from '../tenants/custom-entities/schema-checker.ts';
import { type CustomEntities, createCustomEntities } from '../tenants/custom-entities/service.ts';
import { createUsage, type Usage } from '../tenants/usage/service.ts';
import { openTracer } from '../tracing/open-tracer.ts';
import { createConnections } from './connections.ts';
import { measureInstallation } from './installation-figures.ts';

/** What every process that does upkeep looks for, all the time. */
const allWork = [
  unfolded,
  uncounted,
  ...Object.values(jobWork),
  dueMail,
  ...Object.values(reservationWork),
  expiredRequests,
  expiredTurns,
];

export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Milliseconds since some moment. It never goes back, even if the date changes. */
  elapsed(): number;
}

/** What the modules use. Annals builds it once for a process. */
export interface Context {
  config: Config;
  clock: Clock;
  logger: FastifyBaseLogger;
  /** Connections that tenants share. */
  pool: TenantPool;
  db: Database;
  /** Connections for what every call needs: only quick statements, so that no slow statement delays them. */
  vital: { pool: pg.Pool; db: Database };
  sealer: Sealer;
  oauth: OAuthService;
  webConsole: Console;
  /** Undefined if there is no such limit. */
  tenantRate: TenantRate | undefined;
  findPage: FindPage;
  /** Finds work that waits, for the upkeep of all modules. */
  findTenants: FindTenants;
  historyReads: HistoryReads;
  configuration: Configuration;
  paginator: Paginator;
  customEntities: CustomEntities;
  models: ModelList;
  languageModels: LanguageModels;
  completions: Completions;
  agents: Agents;
  jobs: Jobs;
  mail: MailQueue;
  usage: Usage;
  /** Undefined if traces are not exported. */
  tracer: Tracer | undefined;
  /** Undefined if nobody reads them. */
  metrics: Metrics | undefined;
  /**
   * Does the work in advance that the first token and the first regular expression would wait for, about 0.5 s of processor time. With
   * `reads` it opens connections as well and has the database plan the reads of the history.
   */
  warmUp(options: { reads: boolean }): Promise<void>;
  /** Closes everything that the context made, after the current work has finished. */
  close(): Promise<void>;
}

/** One of the processes that answer on one port and divide connections and memory among them. */
export interface WorkerName {
  /** From 1 to `of`. A worker that takes the place of a dead one has its number. */
  number: number;
  of: number;
}

export interface ContextOptions {
  config: Config;
  databaseUrl: string;
  /** 32 bytes each. The first key seals; every key opens. */
  secretKeys: readonly Uint8Array[];
  /** Left out: no other process answers on the same port. */
  worker?: WorkerName | undefined;
  /** For tests: replaces what the settings would make. */
  overrides?: {
    clock?: Clock;
    logger?: FastifyBaseLogger;
    completionTimes?: CompletionTimes;
    /** Where the page of the console was built. */
    consoleFolder?: string | undefined;
  };
}

/** Builds everything that lives as long as the process. The caller must migrate the database first. */
export async function createContext(options: ContextOptions): Promise<Context> {
  const { config, databaseUrl, secretKeys, worker, overrides = {} } = options;
  const processes = worker?.of ?? 1;
  const clock = overrides.clock ?? { now: () => Date.now(), elapsed: () => performance.now() };
  const logger = overrides.logger ?? createLogger(config.logLevel, undefined, worker?.number);
  const sealer = createSealer(secretKeys);
  const models = await readModels(config.modelsFile);
  const onLostConnection = (error: Error) => logger.warn({ err: error }, 'a connection to the database was lost');
  const tracer = await openTracer(config.traces, logger);
  const connections = createConnections({ databaseUrl, processes, onLostConnection, tracer });
  const { pool, db, vital } = connections;
  const destroy = async () => {
    await Promise.all([connections.close(), endMeasuring()]);
  };
  let endMeasuring = async () => {};
  const metrics = config.metrics === undefined ? undefined : new Metrics();
  if (metrics !== undefined) {
    measureProcess(metrics, productVersion());
    const [shared = [], own = []] = pool.pools.map((one) => [one]);
    measureConnections(metrics, { shared, own, vital: [vital.pool], exports: connections.exports.pool.pools });
    if (worker === undefined) endMeasuring = measureInstallation(metrics, databaseUrl);
  }
  const regexes = new RegexMatcherPool();
  const schemas = createSchemaChecker();
  try {
    const oauth = await createOAuthService({
      db: vital.db,
      sealer,
      baseUrl: config.baseUrl,
      now: () => clock.now(),
      elapsed: () => clock.elapsed(),
      onUnreadableKey: (kid) => logger.warn({ kid }, 'no secret key opens this signing key; its tokens are refused'),
    });
    const webConsole = createConsole({
      db,
      vital: vital.db,
      sealer,
      clients: {
        checkSecret: oauth.checkSecret,
        tryOnce: oauth.tryOnce,
        find: findClient,
        findState: oauth.findClientState,
        remove: deleteClientWithoutSecret,
      },
      installation: oauth.installation,
      baseUrl: config.baseUrl,
      allowsInsecure: config.consoleInsecure,
      folder: overrides.consoleFolder ?? join(packageFolder(), 'console', 'dist'),
    });
    const tenantRate =
      config.tenantRate === undefined
        ? undefined
        : new TenantRate({
            rate: config.tenantRate,
            take: createTakePortion(vital.db, config.tenantRate),
            elapsed: () => clock.elapsed(),
            onUnreachable: (error) =>
              logger.warn({ err: error }, 'the database cannot be asked for the rate of a tenant'),
          });
    const dictionaries = new DictionaryCache(pool, { maxBytes: Math.floor(maxNameBytes / processes) });
    const history = { pool, db, regexes, now: () => clock.now(), dictionaries };
    const findPage = createFindPage(history);
    const historyReads = createHistoryReads(history);
    const configuration = createConfiguration({ pool, db, sealer, now: () => clock.now() });
    const paginator = createPaginator({ sealer, now: () => clock.now() });
    const customEntities = createCustomEntities({
      db,
      logger,
      regexes,
      paginator,
      schemas,
      now: () => clock.now(),
      record: recordChange,
    });
    const transports = { vendors: createTransport(), selfHosted: createSelfHostedTransport(config.selfHostedAllow) };
    const observers = [metrics && providerCallObserver(metrics), tracer && tracedCalls(tracer)];
    const languageModels = observers.reduce<LanguageModels>(
      (observed, observer) => (observer === undefined ? observed : observedCalls(observed, observer)),
      createLanguageModels({ baseUrls: config.providerBaseUrls, transports }),
    );
    const usage = createUsage({ pool, vital, logger, now: () => clock.now() });
    const completions = createCompletions({
      db,
      vital,
      sealer,
      logger,
      languageModels,
      config,
      ownToken: (tenant) => configuration.readProviderToken(tenant),
      countOwn: (tenant, used) => usage.addTokens(tenant, used),
      times: overrides.completionTimes,
      onRefusal: metrics && quotaRefusalObserver(metrics),
    });
    const mail = createMailQueue({ db, logger, mail: config.mail });
    const documents = createDocumentLists({ db, regexes, paginator });
    const scopesNow: ScopesNow = async (tenant, clientId) => {
      const client = await findClient(db, tenant, clientId);
      return client === undefined || client.revoked ? undefined : client.scopes;
    };
    const jobs: Jobs = createJobs({
      db,
      logger,
      now: () => clock.now(),
      documents,
      exportHistory: createExportHistory({ ...history, db: connections.exports.db }),
      runChat: (chat, run) => runQueuedChat({ chats: agents.chats, scopesNow }, chat, run),
      waitsForSession,
      tracer,
      onEnded: (type, status) => metrics?.count('annals_jobs_ended_total', { type, status }),
    });
    const agents: Agents = createAgents({
      db,
      sealer,
      logger,
      now: () => clock.now(),
      documents,
      askHistory: createAnswerQuery(findPage),
      caller: completions.caller,
      queueMail: mail.queueMail,
      jobs,
      notificationEmail: (tenant) => readNotificationEmail(configuration, tenant),
    });
    const warmUp = async ({ reads }: { reads: boolean }) => {
      if (reads) await pool.warmUp(warmUpStatements());
      await oauth.warmUp();
      await regexes.warmUp();
    };
    const close = async () => {
      await usage.close();
      transports.vendors.close();
      transports.selfHosted.close();
      await regexes.close();
      await schemas.close();
      await destroy();
      await tracer?.close();
    };
    return {
      config,
      clock,
      logger,
      pool,
      db,
      vital,
      sealer,
      oauth,
      webConsole,
      tenantRate,
      findPage,
      findTenants: sharedLook(db, allWork),
      historyReads,
      configuration,
      paginator,
      customEntities,
      models,
      languageModels,
      completions,
      agents,
      jobs,
      mail,
      usage,
      tracer,
      metrics,
      warmUp,
      close,
    };
  } catch (error) {
    await destroy();
    throw error;
  }
}
