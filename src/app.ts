import { join } from 'node:path';
import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import { countReads } from './access/accesses/count-reads.ts';
import { accessRoutes, accessUpkeep } from './access/accesses/routes.ts';
import { grantListRoutes } from './access/grants/grant-list-routes.ts';
import { authorizationServerRoutes } from './access/grants/routes.ts';
import { credentialRoutes } from './access/keys/routes.ts';
import { noteUsesOfClients } from './access/oauth/last-uses.ts';
import { type OAuthRoutesOptions, oauthRoutes } from './access/oauth/routes.ts';
import { consoleRoutes, consoleUpkeep } from './access/sessions/routes.ts';
import { sessionListRoutes } from './access/sessions/session-list-routes.ts';
import { viewerTokenRoutes } from './access/viewer-tokens/routes.ts';
import { viewerScriptRoute } from './access/viewer-tokens/script-route.ts';
import type { Context } from './context/context.ts';
import { packageFolder, productVersion } from './core/package-folder.ts';
import { deliveryUpkeep } from './delivery/dispatch/upkeep.ts';
import { subscriptionRoutes } from './delivery/subscriptions/routes.ts';
import { EmailTarget, HttpTarget, S3Target, SplunkTarget, WebhookTarget } from './delivery/targets/schemas.ts';
import { agenticRoutes, agentUpkeep } from './desk/agents/routes.ts';
import { anthropicRoutes } from './desk/anthropic/routes.ts';
import { budgetRoutes, budgetUpkeep } from './desk/budgets/routes.ts';
import { callRoutes, callUpkeep } from './desk/calls/routes.ts';
import { completionRoutes, completionUpkeep } from './desk/completions/routes.ts';
import { jobRoutes, jobUpkeep } from './desk/jobs/routes.ts';
import { mailUpkeep } from './desk/mail/service.ts';
import { modelRoutes } from './desk/models/routes.ts';
import { openaiRoutes } from './desk/openai/routes.ts';
import { erasureRoutes } from './history/erasure/routes.ts';
import { feedRoutes } from './history/feed/routes.ts';
import { mcpRoutes } from './history/mcp/routes.ts';
import { actorRoutes } from './history/routes/actor-routes.ts';
import { logRoutes } from './history/routes/log-routes.ts';
import { changelogRoutes } from './history/routes/routes.ts';
import { changelogUpkeep } from './history/upkeep/upkeep.ts';
import { savedViewRoutes } from './history/views/routes.ts';
import { basePathOf } from './http/base-path.ts';
import { type HealthOptions, healthRoutes } from './http/health/health-routes.ts';
import { createHttpServer } from './http/http-server.ts';
import type { HttpServer } from './http/http-server-type.ts';
import { createMetricsServer, measureRequests } from './http/metrics/server.ts';
import { docsRoutes } from './http/openapi/docs-routes.ts';
import { describeInterface } from './http/openapi/routes.ts';
import { type Figures, textOf } from './metrics/metrics.ts';
import { foldObserver, takenObserver } from './metrics/recording.ts';
import { WriteProbe } from './postgres/write-probe.ts';
import { createBatchRecorder } from './recording/batches/record-batch.ts';
import { readMapping } from './recording/mapping/read-mapping.ts';
import { BodyReader } from './sources/recorder/body-reader.ts';
import { recorderRoutes } from './sources/recorder/routes.ts';
import { configurationRoutes } from './tenants/configuration/routes.ts';
import { customEntitiesUpkeep, customEntityRoutes } from './tenants/custom-entities/routes.ts';
import { countRequests, usageRoutes } from './tenants/usage/routes.ts';

export interface AppOptions {
  /** Why the process is not ready, independent of its database; undefined if it is ready. */
  notReady?: () => string | undefined;
  /** Maximum milliseconds until the headers of an answer are sent; default 30,000. */
  requestLimit?: number | undefined;
  /** Resolves when this process does the upkeep for all on its port; left out: it does from the start. */
  upkeepTurn?: Promise<void> | undefined;
}

/** The table of contents: Annals registers every module here, by name, in order. */
export async function buildApp(context: Context, options: AppOptions = {}): Promise<HttpServer> {
  const {
    administration,
    agents,
    anthropic,
    authorizationServer,
    budgetAlerts,
    budgets,
    clock,
    completions,
    config,
    configuration,
    customEntities,
    db,
    dispatcher,
    documents,
    feed,
    findPage,
    findTenants,
    historyReads,
    historyTexts,
    jobs,
    mail,
    metrics,
    models,
    openai,
    paginator,
    readRestriction,
    savedViews,
    sealer,
    sealing,
    subscriptions,
    usage,
    verifyGrant,
    verifyKey,
    verifyViewerToken,
    webConsole,
  } = context;
  const callers = {
    consoleAccess: webConsole.access,
    verifyGrant,
    verifyKey,
    verifyViewerToken,
    redeemGrant: authorizationServer?.redeemer.redeem,
    baseUrl: config.baseUrl,
  };
  const app = await createApp(context, options, callers);

  await app.register(changelogRoutes, { findPage, reads: historyReads, sealer, now: () => clock.now() });
  await app.register(feedRoutes, { feed });
  await app.register(logRoutes, { db, sealer, now: () => clock.now() });
  await app.register(viewerTokenRoutes, { db, sealer, readRestriction, now: () => clock.now() });
  await app.register(actorRoutes, { reads: historyReads, documents, paginator });
  await app.register(erasureRoutes, { documents, paginator });
  await app.register(savedViewRoutes, { savedViews, paginator });
  const targets = [WebhookTarget, HttpTarget, S3Target, SplunkTarget, EmailTarget] as const;
  await app.register(subscriptionRoutes, { subscriptions, paginator, targets });
  await app.register(deliveryUpkeep, { db, dispatcher, findTenants });
  await app.register(changelogUpkeep, {
    db,
    now: () => clock.now(),
    findTenants,
    folds: metrics && foldObserver(metrics),
    onCosigning: metrics && ((outcome) => metrics.count('annals_cosignatures_total', { outcome })),
    sealing,
  });
  await app.register(configurationRoutes, { configuration });
  await app.register(customEntityRoutes, { customEntities, paginator });
  await app.register(customEntitiesUpkeep, { db });
  await app.register(modelRoutes, { models });
  await app.register(completionRoutes, completions);
  const ofFormats = {
    idempotency: completions.idempotency,
    version: productVersion(),
    address: config.baseUrl ?? '',
  };
  await app.register(openaiRoutes, { openai, ...ofFormats });
  await app.register(anthropicRoutes, { anthropic, ...ofFormats });
  await app.register(completionUpkeep, { ...completions, findTenants });
  await app.register(agenticRoutes, { agents, paginator });
  await app.register(agentUpkeep, { agents, findTenants });
  await app.register(jobRoutes, { jobs, paginator });
  await app.register(jobUpkeep, { jobs, findTenants });
  await app.register(mailUpkeep, { mail, findTenants });
  await app.register(usageRoutes, { usage, now: () => clock.now() });
  await app.register(callRoutes, { db, documents, paginator, now: () => clock.now() });
  await app.register(callUpkeep, { db, findTenants });
  await app.register(budgetRoutes, { budgets, paginator });
  await app.register(budgetUpkeep, { alerts: budgetAlerts, findTenants });
  await app.register(accessRoutes, { documents, paginator });
  await app.register(accessUpkeep, { db });
  await app.register(credentialRoutes, { administration, documents, paginator, lockPerson: webConsole.lockPerson });
  await app.register(sessionListRoutes, { db, documents, paginator, sessions: webConsole.sessions });
  await app.register(grantListRoutes, { db, documents, paginator, sessions: webConsole.sessions });
  await app.register(mcpRoutes, { history: historyTexts, address: authorizationServer?.address });
  if (authorizationServer !== undefined) await app.register(authorizationServerRoutes, authorizationServer);
  await app.register(consoleRoutes, { ...webConsole, approvals: authorizationServer?.consent });
  await app.register(consoleUpkeep, webConsole);
  await app.register(viewerScriptRoute, { folder: join(packageFolder(), 'clients', 'viewer', 'dist') });
  await app.register(docsRoutes, { basePath: basePathOf(config.baseUrl) });

  return app;
}

/** What both ports have. */
async function createApp(
  { config, countedReads, logger, metrics, oauth, requestRates, sealer, tracer, usage, usesOfClients, vital }: Context,
  { notReady, requestLimit, upkeepTurn }: AppOptions,
  {
    baseUrl,
    redeemGrant,
    ...callers
  }: Pick<
    Parameters<typeof createHttpServer>[0],
    'verifyBasic' | 'verifyGrant' | 'verifyKey' | 'verifyViewerToken' | 'consoleAccess'
  > & {
    baseUrl?: string | undefined;
    redeemGrant?: OAuthRoutesOptions['redeemGrant'];
  },
): Promise<HttpServer> {
  const app = await createHttpServer({
    ...callers,
    basePath: basePathOf(baseUrl),
    logger,
    verifyAccessToken: oauth.verifyAccessToken,
    sealer,
    corsOrigins: config.corsOrigins,
    hsts: config.hsts,
    trustedProxies: config.trustedProxies,
    requestRates,
    requestLimit,
    upkeepTurn,
    tracer,
    measure: metrics === undefined ? undefined : (server) => measureRequests(server, metrics),
  });
  countRequests(app, usage);
  countReads(app, countedReads);
  noteUsesOfClients(app, usesOfClients);
  describeInterface(app, { version: productVersion(), baseUrl });

  await app.register(healthRoutes, { ...databaseHealth(vital.pool), notReady });
  await app.register(oauthRoutes, {
    grantToken: oauth.grantToken,
    publishedKeys: oauth.publishedKeys,
    guesses: oauth.guesses,
    redeemGrant,
  });
  return app;
}

export interface RecorderAppOptions extends AppOptions {
  /** The text of the mapping's file, checked. */
  mapping: string | undefined;
  /** Whether the process has no service, so that it does the upkeep of the change history itself. */
  isAlone?: boolean | undefined;
}

/** What listens on the recorder's own port. */
export async function buildRecorderApp(
  context: Context,
  { mapping, isAlone = false, ...options }: RecorderAppOptions,
): Promise<HttpServer> {
  const { clock, db, findTenants, logger, metrics, oauth, sealer, sealing } = context;
  const now = () => clock.now();
  const app = await createApp(context, options, { verifyBasic: oauth.verifyBasic });

  const rules = mapping === undefined ? undefined : readMapping(mapping);
  await app.register(recorderRoutes, {
    db,
    bodies: new BodyReader(mapping),
    mapping: rules,
    recordBatch: createBatchRecorder({
      sealer,
      now,
      people: rules?.people,
      onRejected: (kept) => logger.warn(kept, 'a rejected change was stored'),
      onRecorded: metrics && takenObserver(metrics),
    }),
  });
  if (isAlone) {
    const folds = metrics && foldObserver(metrics);
    await app.register(changelogUpkeep, { db, now, findTenants, folds, sealing });
  }

  return app;
}

function databaseHealth(pool: pg.Pool): Pick<HealthOptions, 'askDatabase' | 'takesWrites'> {
  const writes = new WriteProbe({ run: (statements) => pool.query(statements) });
  return { askDatabase: () => pool.query('select 1'), takesWrites: () => writes.takesWrites() };
}

export interface MetricsAppOptions {
  logger: FastifyBaseLogger;
  /** The figures of every process that this port tells about. */
  readFigures: () => Promise<readonly Figures[]>;
}

/** What listens on the port of metrics. It asks for no token. */
export function buildMetricsApp({ logger, readFigures }: MetricsAppOptions): HttpServer {
  return createMetricsServer({ logger, readText: async () => await textOf(await readFigures()) });
}
