import { randomBytes } from 'node:crypto';
import type { NewViewerToken, ViewerToken } from '@annals/client';
import { type ClientDescription, createClient, type NewClient } from '../../../src/access/oauth/clients.ts';
import { buildApp } from '../../../src/app.ts';
import { type Context, createContext } from '../../../src/context/context.ts';
import type { Clock } from '../../../src/context/foundation.ts';
import { readConfig } from '../../../src/core/config/config.ts';
import type { CompletionTimes } from '../../../src/desk/completions/service.ts';
import { basePathOf, withoutBasePath } from '../../../src/http/base-path.ts';
import type { HttpServer } from '../../../src/http/http-server-type.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { restrictableScopes, scopes } from '../../../src/http/scopes.ts';
import type { HttpClient } from '../../../src/outbound/http-client.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { type AnswerCheck, checkAnswers } from './described-answers.ts';
import { openPooler } from './pgbouncer.ts';

export interface TestServerOptions {
  /** Another server's, to run two processes' worth of them on one database; left out: a fresh one. */
  database?: TestDatabase;
  secretKeys?: readonly Uint8Array[];
  /** Left out, the whole or a part of it: the time of the machine. */
  clock?: Partial<Clock>;
  /** Environment variables; PORT and DATABASE_URL are of no effect. */
  environment?: Record<string, string>;
  /** Of a server that was closed, to start it again; left out: a free one. */
  port?: number;
  /** Milliseconds that a request has; left out: 30,000. */
  requestLimit?: number;
  /** Left out: those of the contract. */
  completionTimes?: CompletionTimes;
  /** Where the page of the console was built; left out: `console/dist`. */
  consoleFolder?: string;
  /** Reads the metadata documents of programs that sign in. */
  programClient?: Pick<HttpClient, 'send'>;
  /** Adds routes, as a room would. */
  extend?: (app: HttpServer, context: Context) => void;
}

export interface TestServer {
  baseUrl: string;
  context: Context;
  app: HttpServer;
  database: TestDatabase;
  /** Every line that was logged, as it was written. */
  logLines: string[];
  /**
   * Calls the path, with the token if there is one; anything else as in fetch. Statuses, and bodies that are read,
   * are checked against the OpenAPI document.
   */
  call(path: string, options?: CallOptions): Promise<Response>;
  createTenant(tenant: string): Promise<void>;
  /** A client of the tenant, with all scopes by default; creates the tenant if it does not exist. */
  createClient(tenant: string, options?: ClientOptions): Promise<NewClient>;
  /** An access token of that client, by way of the token endpoint. */
  tokenOf(client: NewClient, scope?: string): Promise<string>;
  /** An access token for the tenant, of a client made for it. */
  token(tenant: string, options?: ClientOptions): Promise<string>;
  /**
   * A viewer token of the tenant. Left out of `options`: it shows all, with files, to the subject `anybody`, and is
   * issued by a client made for it.
   */
  viewerToken(tenant: string, options?: ViewerTokenOptions): Promise<string>;
  /** Stops the server, and drops the database unless it was another server's. */
  close(): Promise<void>;
}

/** Left out: a client with all scopes that it can have, and no restriction. */
type ClientOptions = Partial<Pick<ClientDescription, 'scope' | 'name' | 'restriction'>>;

interface ViewerTokenOptions extends Partial<NewViewerToken> {
  /** The access token of who makes it. */
  token?: string | undefined;
}

export interface CallOptions extends RequestInit {
  token?: string;
  /** Sent as JSON, with POST by default. */
  json?: unknown;
  /** The test has stored rows that no operation would write, so their bodies are like nothing that is described. */
  ofInventedRows?: boolean;
}

/** Every server of a test run shares these by default, so that several open what one has sealed. */
export const testSecretKeys: readonly Uint8Array[] = [randomBytes(32)];

/** Without the routes that a test adds, the documents of all servers are the same but for their addresses. */
let answers: AnswerCheck | undefined;

/** The real app on a real database and a free port. To be closed in afterAll. */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const database = options.database ?? (await createTestDatabase());
  const logLines: string[] = [];
  // `ANNALS_TEST_POOLER=30 npx vitest run test/isolation`: every server through pgbouncer with so many connections.
  const connections = process.env.ANNALS_TEST_POOLER;
  const pooler = connections === undefined ? undefined : await openPooler(database.url, Number(connections));
  const context = await createContext({
    // Not the embedded one.
    config: { ...readConfig(options.environment ?? {}), databaseUrl: database.url },
    databaseUrl: pooler?.url ?? database.url,
    secretKeys: options.secretKeys ?? testSecretKeys,
    overrides: {
      logger: createLogger('debug', { write: (line) => void logLines.push(line) }),
      clock: { now: () => Date.now(), elapsed: () => performance.now(), ...options.clock },
      consoleFolder: options.consoleFolder,
      programClient: options.programClient,
      ...(options.completionTimes === undefined ? {} : { completionTimes: options.completionTimes }),
    },
  });
  const app = await buildApp(context, { requestLimit: options.requestLimit });
  answers ??= checkAnswers(app.openApiText());
  options.extend?.(app, context);
  const baseUrl = await app.listen({ port: options.port ?? 0, host: '127.0.0.1' });
  const check = answers;
  const basePath = basePathOf(context.config.baseUrl);

  async function call(
    path: string,
    { token, json, ofInventedRows = false, ...others }: CallOptions = {},
  ): Promise<Response> {
    const init = json === undefined ? others : { method: 'POST', body: JSON.stringify(json), ...others };
    const headers = new Headers(init.headers);
    if (json !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json');
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
    const response = await fetch(`${baseUrl}${path}`, { ...init, headers });
    if (ofInventedRows) return response;
    return check.watch(init.method ?? 'GET', withoutBasePath(path, basePath), response);
  }

  const server: TestServer = {
    baseUrl,
    context,
    app,
    database,
    logLines,
    call,
    async createTenant(tenant) {
      await createTenant(context.db, tenant);
    },
    async createClient(
      tenant,
      { restriction, scope = (restriction ? restrictableScopes : scopes).join(' '), name } = {},
    ) {
      await createTenant(context.db, tenant);
      return await createClient(context.db, { tenant, scope, name, restriction });
    },
    async tokenOf({ clientId, clientSecret }, scope) {
      const response = await call('/oauth/token', {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: clientId,
          client_secret: clientSecret,
          ...(scope === undefined ? {} : { scope }),
        }),
      });
      if (response.status !== 200) throw new Error(`no token: ${response.status} ${await response.text()}`);
      const { access_token: token } = (await response.json()) as { access_token: string };
      return token;
    },
    async token(tenant, clientOptions) {
      return await server.tokenOf(await server.createClient(tenant, clientOptions));
    },
    async viewerToken(tenant, { token, ...overrides } = {}) {
      const response = await call(`/changelog/${tenant}/viewer-tokens`, {
        token: token ?? (await server.token(tenant, { scope: 'changelog.viewer_issue' })),
        json: { q: 'entity:*', subject: 'anybody', export: true, ...overrides },
      });
      if (response.status !== 201) throw new Error(`no viewer token: ${response.status} ${await response.text()}`);
      return ((await response.json()) as ViewerToken).token;
    },
    async close() {
      await app.close();
      await context.close();
      await pooler?.stop();
      if (options.database === undefined) await database.drop();
    },
  };
  return server;
}
