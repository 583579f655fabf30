import { Exact } from './exact.ts';
import type { Steps } from './json/steps.ts';
import type { HistoryAnswer, HistoryAnswers } from './pages/history-page.ts';
import { Recorder, type RecorderOptions } from './recorder/recorder.ts';
import { Accesses } from './resources/accesses.ts';
import { Actors } from './resources/actors.ts';
import { Agents } from './resources/agents.ts';
import { Budgets } from './resources/budgets.ts';
import { Chat } from './resources/chat.ts';
import { Completions } from './resources/completions.ts';
import { Configurations } from './resources/configurations.ts';
import { Clients, Keys } from './resources/credentials.ts';
import { CustomEntities } from './resources/custom-entities.ts';
import { Erasures } from './resources/erasures.ts';
import { Grants } from './resources/grants.ts';
import { History } from './resources/history.ts';
import { Instances } from './resources/instances.ts';
import { Jobs } from './resources/jobs.ts';
import { Logs } from './resources/logs.ts';
import { Models } from './resources/models.ts';
import { Proofs } from './resources/proofs.ts';
import { Sessions } from './resources/sessions.ts';
import { Subscriptions } from './resources/subscriptions.ts';
import { Usage } from './resources/usage.ts';
import { ViewerTokens } from './resources/viewer-tokens.ts';
import { Views } from './resources/views.ts';
import type { ChangeEntry, Configuration, CustomEntityType, CustomInstance, DocumentAtMoment } from './schemas.ts';
import { givenTokens } from './transport/access-tokens.ts';
import { parseAnswer, plainAnswers } from './transport/answer-json.ts';
import { tokensOfClient } from './transport/token-source.ts';
import { Transport } from './transport/transport.ts';

interface CommonOptions {
  /** The address of the service; a path in it is kept. */
  readonly baseUrl: string;
  readonly tenant: string;
  /**
   * Milliseconds that an attempt has until the last byte of its answer; left out: 60,000. Completions and chats have
   * more.
   */
  readonly timeout?: number | undefined;
  /** Attempts after the first; left out: 4. */
  readonly maxRetries?: number | undefined;
  /** Milliseconds; left out: 60,000. A `Retry-After` beyond it is not waited for. */
  readonly maxRetryDelay?: number | undefined;
  /** Sends the requests; left out: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /**
   * Waited for every 8 ms while `exact.history` reads a long answer, so that a page stays responsive; left out:
   * an answer is read at once.
   */
  readonly pause?: (() => Promise<void>) | undefined;
}

interface WithClient extends CommonOptions {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Scopes with blanks between them; left out: all that the client has. */
  readonly scope?: string | undefined;
}

interface WithToken extends CommonOptions {
  /** An access token that somebody else renews. Asked for before each attempt. */
  readonly token: () => string | Promise<string>;
}

/** An address of the service, a tenant, and an OAuth client or a source of access tokens. */
export type AnnalsOptions = WithClient | WithToken;

/**
 * A client of the service, for one tenant. It may be shared by a whole application: it keeps one access token.
 *
 * @example
 * const annals = new Annals({ baseUrl: 'https://annals.example.com', tenant: 'acme', clientId, clientSecret });
 * for await (const entry of annals.history.list({ q: 'entity:order' })) console.log(entry.at, entry.actor);
 */
export class Annals {
  readonly history: History;
  readonly actors: Actors;
  readonly views: Views;
  readonly subscriptions: Subscriptions;
  readonly budgets: Budgets;
  readonly accesses: Accesses;
  readonly clients: Clients;
  readonly keys: Keys;
  readonly sessions: Sessions;
  readonly grants: Grants;
  readonly erasures: Erasures;
  readonly proofs: Proofs;
  readonly configurations: Configurations;
  readonly customEntities: CustomEntities;
  readonly agents: Agents;
  readonly chat: Chat;
  readonly logs: Logs;
  readonly jobs: Jobs;
  readonly models: Models;
  readonly completions: Completions;
  readonly usage: Usage;
  readonly viewerTokens: ViewerTokens;
  /** The same calls with every digit of their values. */
  readonly exact: Exact;
  readonly #transport: Transport;
  readonly #tenant: string;

  constructor(options: AnnalsOptions) {
    const { baseUrl, tenant, timeout = 60_000, maxRetries = 4, maxRetryDelay = 60_000 } = options;
    const send = options.fetch ?? globalThis.fetch;
    const transport: Transport = new Transport({
      baseUrl: withoutSlash(baseUrl),
      tokens:
        'token' in options
          ? givenTokens(options.token)
          : tokensOfClient(options, async (request) => await transport.fetchJson(request)),
      timeout,
      maxRetries,
      maxRetryDelay,
      fetch: (input, init) => send(input, init),
      pause: options.pause,
    });
    this.#transport = transport;
    this.#tenant = tenant;
    this.history = new History(transport, tenant, plainHistory);
    this.actors = new Actors(transport, tenant);
    this.views = new Views(transport, tenant);
    this.subscriptions = new Subscriptions(transport, tenant);
    this.budgets = new Budgets(transport, tenant);
    this.accesses = new Accesses(transport, tenant);
    this.clients = new Clients(transport, tenant);
    this.keys = new Keys(transport, tenant);
    this.sessions = new Sessions(transport, tenant);
    this.grants = new Grants(transport, tenant);
    this.erasures = new Erasures(transport, tenant);
    this.proofs = new Proofs(transport, tenant);
    this.configurations = new Configurations(transport, tenant, plainAnswers<Configuration>());
    this.customEntities = new CustomEntities(transport, tenant, plainAnswers<CustomEntityType>());
    this.agents = new Agents(transport, tenant);
    this.chat = new Chat(transport, tenant);
    this.logs = new Logs(transport, tenant);
    this.jobs = new Jobs(transport, tenant);
    this.models = new Models(transport, tenant);
    this.completions = new Completions(transport, tenant);
    this.usage = new Usage(transport, tenant);
    this.viewerTokens = new ViewerTokens(transport, tenant);
    this.exact = new Exact(transport, tenant);
  }

  /**
   * Records changes of your application. Its address is that of the recorder, a listener beside the service.
   *
   * @example
   * const recorder = annals.recorder({ url: 'https://recorder.example.com' });
   * await recorder.record({ op: 'update', entity: 'product', entityId: 'p-17', before, after });
   * await recorder.close();
   */
  recorder({ url, ...options }: RecorderOptions & { readonly url: string }): Recorder {
    return new Recorder(this.#transport.at(withoutSlash(url)), this.#tenant, options);
  }

  /** The custom entities of a type. */
  instances(type: string): Instances {
    return new Instances(this.#transport, { tenant: this.#tenant, type }, plainAnswers<CustomInstance>());
  }
}

/** Answers of the change history with values of JavaScript. */
const plainHistory: HistoryAnswers<ChangeEntry, DocumentAtMoment> = {
  page: parsed<HistoryAnswer<ChangeEntry>>,
  entry: parsed<ChangeEntry>,
  document: parsed<DocumentAtMoment>,
};

/** One step: the engine's own parser cannot be stopped. */
// biome-ignore lint/correctness/useYield: it has nothing to stop between.
function* parsed<Value>(text: string): Steps<Value> {
  return parseAnswer(text) as Value;
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
