import { noteAccess } from '../access/accesses/store.ts';
import { findClient } from '../access/oauth/clients.ts';
import type { ScopesNow } from '../desk/agents/ports.ts';
import { runQueuedChat } from '../desk/agents/queued-chat.ts';
import { type Agents, createAgents } from '../desk/agents/service.ts';
import { waitsForSession } from '../desk/agents/turn-store.ts';
import { type Anthropic, createAnthropic } from '../desk/anthropic/service.ts';
import { type BudgetAlerts, createBudgetAlerts } from '../desk/budgets/alerts.ts';
import { type Budgets, createBudgets } from '../desk/budgets/service.ts';
import { type Completions, type CompletionTimes, createCompletions } from '../desk/completions/service.ts';
import { readPrices } from '../desk/costs/read-prices.ts';
import { createJobs, type Jobs } from '../desk/jobs/service.ts';
import { createMailQueue, type MailQueue } from '../desk/mail/service.ts';
import { observedToolServers } from '../desk/mcp/observed-servers.ts';
import { createOpenToolServer } from '../desk/mcp/tool-server.ts';
import { type ModelList, readModels } from '../desk/models/read-models.ts';
import { createOpenai, type Openai } from '../desk/openai/service.ts';
import { isRefusedAddress } from '../outbound/addresses.ts';
import { createSelfHostedClient, type HttpClient } from '../outbound/http-client.ts';
import { createLanguageModels } from '../providers/language-models.ts';
import { observedCalls, providerCallObserver, quotaRefusalObserver, tracedCalls } from '../providers/observed-calls.ts';
import type { LanguageModels } from '../providers/port.ts';
import { createTransport } from '../providers/transport.ts';
import { keyCachesExpired, readNotificationEmail } from '../tenants/configuration/service.ts';
import type { AccessServices } from './access.ts';
import type { Foundation } from './foundation.ts';
import type { HistoryServices } from './history.ts';
import type { TenantServices } from './tenants.ts';

/** The AI desk: models, completions, agents with their chats, jobs and mail. */
export interface DeskServices {
  models: ModelList;
  languageModels: LanguageModels;
  completions: Completions;
  openai: Openai;
  anthropic: Anthropic;
  agents: Agents;
  budgets: Budgets;
  budgetAlerts: BudgetAlerts;
  jobs: Jobs;
  mail: MailQueue;
}

/** What the desk uses of other modules. */
type DeskParts = HistoryServices & ReturnType<typeof createProviders> & Pick<AccessServices, 'countedReads' | 'oauth'>;

export async function createDesk(
  foundation: Foundation,
  { historyTexts, exportHistory, languageModels, selfHosted, countedReads, oauth }: DeskParts,
  tenants: TenantServices,
  times: CompletionTimes | undefined,
): Promise<DeskServices> {
  const { config, db, vital, sealer, logger, clock, tracer, metrics } = foundation;
  const { configuration, documents } = tenants;
  const now = () => clock.now();
  const completions = createCompletions({
    db,
    vital,
    sealer,
    logger,
    languageModels,
    config,
    ownToken: async (tenant) => (await configuration.readProviderKeys(tenant)).openai,
    findPrice: await readPrices(config.pricesFile),
    makersOf: async (tenant, clientId) => (await oauth.findClientState(tenant, clientId))?.makers ?? [],
    now,
    times,
    onRefusal: metrics && quotaRefusalObserver(metrics),
  });
  const notificationEmail = (tenant: string) => readNotificationEmail(configuration, tenant);
  const mail = createMailQueue({ db, logger, mail: config.mail });
  const scopesNow: ScopesNow = async (tenant, clientId) => {
    const client = await findClient(db, tenant, clientId);
    return client === undefined || client.revoked ? undefined : client.scopes;
  };
  const jobs: Jobs = createJobs({
    db,
    logger,
    now,
    documents,
    exportHistory,
    scopesNow,
    noteDownload: ({ tenant, clientId, person, caller }, details) =>
      noteAccess(db, { tenant, kind: 'export_downloaded', clientId, person, details, caller }),
    runChat: (chat, run) => runQueuedChat({ chats: agents.chats, scopesNow }, chat, run),
    waitsForSession,
    tracer,
    onEnded: (type, status) => metrics?.count('annals_jobs_ended_total', { type, status }),
  });
  const agents: Agents = createAgents({
    db,
    sealer,
    logger,
    now,
    documents,
    async askHistory(tenant, query, { clientId, clientName, person, scopes, caller }) {
      const answered = await historyTexts.changes(tenant, { ...query, scopes });
      countedReads.count({ tenant, clientId, clientName, person, kind: 'agents', caller });
      return answered;
    },
    openToolServer: observedToolServers(createOpenToolServer(selfHosted, times?.toolCall), { metrics, tracer }),
    refusesAddress: (url) => isRefusedAddress(new URL(url), { allowed: config.selfHostedAllow }),
    caller: completions.caller,
    queueMail: mail.queueMail,
    jobs,
    notificationEmail,
  });
  const budgets = createBudgets({ db, documents, now, keyCachesExpired });
  const budgetAlerts = createBudgetAlerts({ db, queueMail: mail.queueMail, notificationEmail, now });
  const models = await readModels(config.modelsFile);
  const ofFormats = {
    caller: completions.caller,
    logger,
    catalogue: models,
    keysOf: (tenant: string) => configuration.readProviderKeys(tenant),
  };
  const openai = createOpenai({
    ...ofFormats,
    sealer,
    languageModels,
    sharedModel: config.sharedProviderToken === undefined ? undefined : config.completionModel,
    now,
  });
  const anthropic = createAnthropic(ofFormats);
  return { models, languageModels, completions, openai, anthropic, agents, budgets, budgetAlerts, jobs, mail };
}

/**
 * The vendors' models and self-hosted ones, measured and traced, and the connections to servers that tenants name. Adds
 * to `closing` what closes the connections.
 */
export function createProviders(
  { config, metrics, tracer }: Foundation,
  closing: AsyncDisposableStack,
): { languageModels: LanguageModels; selfHosted: HttpClient } {
  const selfHosted = createSelfHostedClient(config.selfHostedAllow);
  const transports = { vendors: createTransport(), selfHosted: createTransport(selfHosted) };
  closing.defer(() => {
    transports.vendors.close();
    selfHosted.close();
  });
  const observers = [metrics && providerCallObserver(metrics), tracer && tracedCalls(tracer)];
  const languageModels = observers.reduce<LanguageModels>(
    (observed, observer) => (observer === undefined ? observed : observedCalls(observed, observer)),
    createLanguageModels({ baseUrls: config.providerBaseUrls, transports }),
  );
  return { languageModels, selfHosted };
}
