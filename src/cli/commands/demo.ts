import { existsSync, mkdirSync, openSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createKey, listKeys, revokeKey } from '../../access/keys/key-store.ts';
import { createClient, listClients, revokeClient } from '../../access/oauth/clients.ts';
import type { Context } from '../../context/context.ts';
import { type Config, readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import { type MadeUpCall, madeUpCalls } from '../../demo/made-up-calls.ts';
import { type MadeUpProvider, startMadeUpProvider } from '../../demo/made-up-provider.ts';
import { type PreparedShop, preparedShop } from '../../demo/prepared-shop.ts';
import { sampleCalls } from '../../demo/sample-calls.ts';
import { writeLogs } from '../../desk/agents/log-store.ts';
import { type LoggedRequest, noteOf } from '../../desk/agents/request-log.ts';
import type { AgentBody } from '../../desk/agents/schemas.ts';
import { readPrices } from '../../desk/costs/read-prices.ts';
import { changelogDialect } from '../../history/search/plan/dialect.ts';
import { createLogger, LogStream } from '../../http/logger.ts';
import { scopes } from '../../http/scopes.ts';
import type { Database } from '../../postgres/database.ts';
import { createTenant } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { makeProofKey } from '../../proof/log/signer.ts';
import { parseQuery } from '../../query/parse.ts';
import { createRecorder } from '../../recording/record-change.ts';
import { sentValues } from '../../tenants/configuration/sent-values.ts';
import { storeDocuments } from '../../tenants/custom-entities/store-documents.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, Stopped } from '../command.ts';
import { consoleAddress, makeConsoleLink } from '../console-link.ts';
import { requirePort, urlOf } from '../listen.ts';
import { type ServeOptions, serveUntilStopped } from '../serve.ts';
import { withContext } from '../with-context.ts';

const tenant = 'demo';
const clientName = 'Demo';
/** Milliseconds (contract 13). */
export const demoLinkLifetime = 10 * 60_000;
const allTime = 'occurredAt:>="1970-01-01T00:00:00Z"';

export const command: Command = {
  help: `Usage: annals demo [--ai]

Runs the service with a tenant "demo" that has the history of an invented shop: about
5,000 changes of the last 90 days, and its warranty claims as instances of a custom
entity. The settings are those of "annals serve", but it always runs one process. The
recorder listens too, on a free port unless ANNALS_RECORDER_PORT names one.

Prints the base URL, calls to paste with a client for this start, and a link that signs
in to the console. Without DATABASE_URL the log goes to demo.log in ANNALS_DATA_DIR, where
the key demo-proof.pem seals the history. Revokes the clients of earlier starts. The next
start uses the same history; for a new shop choose another ANNALS_DATA_DIR.

  --ai    adds a provider of language models with made-up answers, which say so:
          completions, chats, OpenAI and Anthropic clients work without a key. Shows an agent,
          a budget, and the costs and logs of invented calls.

Example:
  PORT=3000 annals demo --ai`,

  async run(args, io) {
    const { values } = parseCommand('demo', { args, options: { ai: { type: 'boolean', default: false } } });
    await using provider = values.ai ? await startMadeUpProvider() : undefined;
    // In a thread, while PostgreSQL initialises the database of a first start. Later starts do not use it.
    const shop = preparedShop(Date.now());
    shop.catch(() => {});
    using files = openFiles(io);
    try {
      await withContext(
        { ...io, environment: environmentOf(io, { provider, proofKey: files?.proofKey }) },
        (context, config, watch) =>
          runDemo(context, config, { io, watch, shop, hasAi: provider !== undefined, logFile: files?.logFile }),
        { logger: files?.logger, loopbackUrl: loopbackUrlOf(io) },
      );
    } catch (error) {
      // As for serve, a signal before the start is a success.
      if (!(error instanceof Stopped)) throw error;
    }
    return 0;
  },
};

/**
 * Beside the demo's own database go its log, so that the terminal keeps the calls, and the key that seals its history.
 * Nothing is written beside an operator's database.
 */
function openFiles({ environment }: CommandIo) {
  const { databaseUrl, dataDir, logLevel } = readConfig(environment);
  if (databaseUrl !== undefined) return undefined;
  const [logFile, proofKey] = [join(dataDir, 'demo.log'), join(dataDir, 'demo-proof.pem')];
  let opened: number;
  try {
    mkdirSync(dataDir, { recursive: true });
    opened = openSync(logFile, 'a');
  } catch (cause) {
    throw new OperatorError(`${logFile} cannot be written; set ANNALS_DATA_DIR to another folder`, { cause });
  }
  if (!existsSync(proofKey)) makeProofKey(proofKey);
  const stream = new LogStream(opened);
  return { logFile, proofKey, logger: createLogger(logLevel, stream), [Symbol.dispose]: () => stream.flushSync() };
}

/** Deliveries may reach this machine, where the webhook receiver of the sample calls listens. */
function environmentOf(
  { environment }: CommandIo,
  { provider, proofKey }: { provider: MadeUpProvider | undefined; proofKey: string | undefined },
): CommandIo['environment'] {
  const madeUp = provider && {
    OPENAI_BASE_URL: provider.baseUrl,
    ANTHROPIC_BASE_URL: provider.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'made-up',
  };
  return {
    ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.1`,
    ...(proofKey && { ANNALS_PROOF_KEY_FILE: proofKey }),
    ...environment,
    ...madeUp,
  };
}

/** Where programs sign in to the demo; undefined if the port is not known yet, or others reach it too. */
function loopbackUrlOf({ environment }: CommandIo): string | undefined {
  const { host, port } = readConfig(environment);
  return port === 0 || !['127.0.0.1', 'localhost', '::1'].includes(host) ? undefined : urlOf(host, port);
}

interface DemoOptions extends ServeOptions {
  shop: Promise<PreparedShop>;
  hasAi: boolean;
  logFile: string | undefined;
}

async function runDemo(
  context: Context,
  config: Config,
  { shop, hasAi, logFile, ...options }: DemoOptions,
): Promise<void> {
  const { io } = options;
  const recorder = config.recorder ?? { host: config.host, port: 0 };
  await requirePort(config, 'PORT');
  await requirePort(recorder, 'ANNALS_RECORDER_PORT');
  await createTenant(context.db, tenant);
  await revokeEarlierClients(context);
  // After the shop: the desk's own changes are history too, and a tenant with history gets no shop.
  const filled = fillHistory(context, shop, io).then(() => (hasAi ? fillDesk(context, config) : undefined));
  filled.catch(() => {});
  const ready = async (baseUrl: string, recorderUrl = '') => {
    await filled;
    const client = { tenant, scope: scopes.join(' '), name: clientName };
    const { clientId, clientSecret } = await createClient(context.db, client);
    const link = await makeConsoleLink(context.db, client, demoLinkLifetime);
    io.answer(baseUrl);
    io.answer(
      sampleCalls({
        baseUrl,
        recorderUrl,
        now: context.clock.now(),
        tenant,
        clientId,
        clientSecret,
        tailSettings: config.databaseUrl === undefined ? `ANNALS_DATA_DIR='${resolve(config.dataDir)}' ` : '',
        ...(await sampleSubjects(context)),
        openaiKey: hasAi ? await makeKey(context) : undefined,
      }),
    );
    io.answer(`# The console, signed in. This link works once, for ${demoLinkLifetime / 60_000} minutes:`);
    io.answer(consoleAddress(config.baseUrl ?? baseUrl, link));
    io.tell(
      `The tenant "${tenant}" is served at ${baseUrl}, and its recorder at ${recorderUrl}. ` +
        `${config.baseUrl ?? baseUrl}/docs describes all calls. ${logFile === undefined ? '' : `The log is in ${logFile}. `}^C ends it.`,
    );
  };
  await serveUntilStopped(context, config, { ...options, recorder, ready });
}

async function fillHistory(
  { db, clock, findPage }: Context,
  shop: Promise<PreparedShop>,
  { tell }: CommandIo,
): Promise<void> {
  const { total } = await findPage(tenant, parseQuery(allTime, changelogDialect), { skip: 0, size: 1 });
  if (total > 0) {
    tell(`The tenant "${tenant}" already has a history of ${total} changes.`);
    return;
  }
  const now = clock.now();
  const { changes, claimType: type, claims: instances } = await shop;
  // Before the history, whose existence makes the next start skip all of this.
  await inTransaction(db, (transaction) => storeDocuments(transaction, tenant, { type, instances, now }));
  // In one batch, so that a tenant has the whole shop or nothing.
  const outcomes = await createRecorder(db, tenant, () => now)(changes);
  const recorded = outcomes.filter((outcome) => outcome === 'recorded').length;
  tell(`Recorded ${recorded} changes of an invented shop for the tenant "${tenant}".`);
}

const agentId = 'shop-helper';
const agent = {
  name: { en: 'Shop helper' },
  description: { en: 'Looks into the change history. Its answers are made up.' },
  userPrompt: 'You answer questions about the shop. Look into the change history first.',
  llmConfig: { provider: 'shared' },
  nativeTools: ['change-history'],
};

/** An agent, a key of the provider, a budget, and invented calls, unless the tenant has had any. */
async function fillDesk(
  { db, clock, agents, budgets, completions, configuration }: Context,
  config: Config,
): Promise<void> {
  const known = await db.selectFrom('budget').select('id').where('tenant', '=', tenant).limit(1).executeTakeFirst();
  if (known !== undefined) return;
  const author = { tenant, actor: clientName };
  const calls = madeUpCalls(clock.now(), agentId, await readPrices(config.pricesFile));
  await Promise.all(calls.map(({ call, end }) => completions.quota.record(tenant, call, end)));
  await recordRequests(db, calls);
  await agents.own.put(author, agentId, { body: agent as AgentBody, text: JSON.stringify(agent) });
  // With a key of its own a tenant may call every model of the provider; with the service's only its one model.
  const { openai, anthropic } = await configuration.readProviderKeys(tenant);
  for (const [key, current] of Object.entries({ providerApiToken: openai, anthropicApiToken: anthropic })) {
    if (current !== undefined) continue;
    const sent = await sentValues('{"value":"made-up"}');
    await configuration.create(
      author,
      sent.map((value) => ({ key, value: 'made-up', ...value })),
    );
  }
  // Last, since its existence makes the next start skip all of this.
  await budgets.put(author, 'monthly', { period: 'month', limitUsd: '10' });
}

/** The logs of the chats among the calls, all or none. */
async function recordRequests(db: Database, calls: readonly MadeUpCall[]): Promise<void> {
  await inTransaction(db, async (transaction) => {
    for (const request of requestsOf(calls)) await writeLogs(transaction, tenant, request);
  });
}

/** Requests of a session. */
const sessionLength = 3;

/** The logs of the chats among the calls, oldest first, as the agent's requests would have left them. */
function requestsOf(calls: readonly MadeUpCall[]): LoggedRequest[] {
  return calls
    .filter(({ call }) => call.operation === 'chat')
    .toSorted((a, b) => a.call.at - b.call.at)
    .map(({ call: { id, at }, end: { durationMs, usage } }, index) => {
      const tokens = { prompt: usage.inputTokens, completion: usage.outputTokens };
      const note = { severity: 'INFO', agentId, requestId: id, at: at + durationMs } as const;
      const text = `Made up. Call 1 of the model: ${tokens.prompt} prompt tokens, ${tokens.completion} completion tokens.`;
      return {
        id,
        requestId: id,
        sessionId: `made-up-${Math.floor(index / sessionLength) + 1}`,
        agentId,
        messages: [noteOf({ ...note, text })],
        duration: durationMs,
        tokens,
        at: at + durationMs,
      };
    });
}

/** A key for an OpenAI client; revokes those of earlier starts. */
async function makeKey({ db }: Context): Promise<string> {
  for (const { id, name, revokedAt } of await listKeys(db, tenant)) {
    if (name === clientName && revokedAt === null) await revokeKey(db, tenant, id);
  }
  return (await createKey(db, { tenant, name: clientName, scopes: ['ai.completion_manage'] })).key;
}

/** Secrets are not stored, so each start makes a new client. */
async function revokeEarlierClients({ db }: Context): Promise<void> {
  for (const { clientId, name, revokedAt } of await listClients(db, tenant)) {
    if (name === clientName && revokedAt === null) await revokeClient(db, clientId);
  }
}

/** An order and a time for the sample calls that exist in the history, whenever it was recorded. */
async function sampleSubjects({ findPage, clock }: Context): Promise<{ order: string; around: number }> {
  const latest = (q: string) => findPage(tenant, parseQuery(`${q} ${allTime}`, changelogDialect), { skip: 0, size: 1 });
  const [order] = (await latest('entity:order type:update')).entries;
  const [product] = (await latest('entity:product')).entries;
  return { order: order?.entityId ?? '10001', around: (product?.at ?? clock.now()) + 1 };
}
