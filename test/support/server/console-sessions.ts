import { expect } from 'vitest';
import { listClients, type NewClient } from '../../../src/access/oauth/clients.ts';
import { linkLifetime } from '../../../src/access/sessions/links.ts';
import { type ConsoleLink, makeConsoleLink } from '../../../src/cli/console-link.ts';
import { readingScopes } from '../../../src/http/scopes.ts';
import { Browser } from './browser.ts';
import type { TestServer } from './server.ts';

export const sessionPath = '/console/api/session';

/** The response body for a session that does not exist. */
export const invalidToken = {
  fault: { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } },
};

/** A browser in which the client is signed in. */
export async function signIn(server: TestServer, client: NewClient): Promise<Browser> {
  const browser = new Browser(server);
  expect((await browser.signIn(client)).status).toBe(200);
  return browser;
}

/** A link that signs in with the scopes for reading. `lifetime` is in milliseconds. */
export async function linkFor(server: TestServer, tenant: string, lifetime = linkLifetime): Promise<ConsoleLink> {
  const client = { tenant, scope: readingScopes.join(' '), name: 'Guest' };
  return await makeConsoleLink(server.database.db, client, lifetime);
}

/** Whether a process takes the cookie of the browser for that of a session. */
export async function isSignedIn(browser: Browser, server: TestServer): Promise<boolean> {
  const copy = new Browser(server);
  copy.cookie = browser.cookie;
  const response = await copy.call(sessionPath);
  if (response.status === 401) expect(await response.json()).toEqual(invalidToken);
  else expect(response.status).toBe(200);
  return response.status === 200;
}

/** How many rows of the table are the client's. */
export async function rowsOf(
  server: TestServer,
  table: 'console_session' | 'console_link' | 'oauth_client',
  clientId: string,
): Promise<number> {
  const { rows } = await server.database.pool.query(`select from ${table} where client_id = $1`, [clientId]);
  return rows.length;
}

/** Whether `annals client list` shows a client, and as one that is not revoked. */
export async function isListed(server: TestServer, tenant: string, clientId: string): Promise<boolean> {
  const clients = await listClients(server.database.db, tenant);
  return clients.some((one) => one.clientId === clientId && one.revokedAt === null);
}
