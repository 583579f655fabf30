import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect } from 'vitest';
import { checkedEvery } from '../../../src/access/sessions/people-sessions.ts';
import { TestIdentityProvider } from '../vendor/identity-provider.ts';
import { Browser } from './browser.ts';
import { makeDataFolder, removeDataFolder } from './data-folder.ts';
import { startTestServer, type TestServer } from './server.ts';

export const publicUrl = 'https://annals.example';

/** A service that people sign in to with a company's account. */
export class PeopleServer {
  readonly server: TestServer;
  readonly provider: TestIdentityProvider;
  readonly rulesFile: string;
  /** The settings, for another process on the same database. */
  readonly environment: Record<string, string>;
  readonly #folder: string;

  private constructor(
    server: TestServer,
    provider: TestIdentityProvider,
    { folder, environment }: { folder: string; environment: Record<string, string> },
  ) {
    this.server = server;
    this.provider = provider;
    this.environment = environment;
    this.#folder = folder;
    this.rulesFile = rulesFileOf(folder);
  }

  static async start(rules: string, clock?: { now: () => number; elapsed: () => number }): Promise<PeopleServer> {
    const provider = await TestIdentityProvider.start();
    const folder = await makeDataFolder('rules');
    await mkdir(folder);
    await writeFile(rulesFileOf(folder), rules);
    const environment = {
      ANNALS_BASE_URL: publicUrl,
      ANNALS_OIDC_ISSUER: provider.issuer,
      ANNALS_OIDC_CLIENT_ID: provider.clientId,
      ANNALS_OIDC_CLIENT_SECRET: provider.clientSecret,
      ANNALS_OIDC_RULES: rulesFileOf(folder),
      ANNALS_TRUSTED_PROXIES: '127.0.0.1',
    };
    const server = await startTestServer({ environment, ...(clock && { clock }) });
    return new PeopleServer(server, provider, { folder, environment });
  }

  async close(): Promise<void> {
    await this.server.close();
    await this.provider.stop();
    await removeDataFolder(this.#folder);
  }

  /** A browser on its way to the provider. */
  async begin(to = '') {
    const browser = new Browser(this.server, { publicUrl });
    const answer = await browser.call(`/console/oidc?${new URLSearchParams({ to })}`);
    expect(answer.status).toBe(302);
    return { browser, address: new URL(answer.headers.get('location') ?? '') };
  }

  async comeBack(browser: Browser, callback: URL) {
    const answer = await browser.call(`${callback.pathname}${callback.search}`, {
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    const cookies = answer.headers.getSetCookie();
    const session = cookies.find((cookie) => /^__Host-annals-(?!oidc)/.test(cookie));
    browser.cookie = session?.split(';')[0];
    return { status: answer.status, location: answer.headers.get('location') ?? '', cookies };
  }

  async signIn(to = '') {
    const { browser, address } = await this.begin(to);
    return { browser, ...(await this.comeBack(browser, this.provider.signIn(address))) };
  }

  /** So many milliseconds pass for the sessions. */
  async pass(time: number): Promise<void> {
    await sql`
      update console_session set checked_at = checked_at - ${time} * interval '1 millisecond',
        renewing_until = renewing_until - ${time} * interval '1 millisecond'`.execute(this.server.database.db);
  }

  /** Four minutes pass: the provider and the rules are checked again. */
  async check(): Promise<void> {
    await this.pass(checkedEvery);
    await this.server.context.webConsole.peopleSessions.checkPeople();
  }
}

export const rulesOf = (...list: object[]) => JSON.stringify({ rules: list });

export async function sessionOf(browser: Browser) {
  const answer = await browser.call('/console/api/session');
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

function rulesFileOf(folder: string): string {
  return join(folder, 'rules.json');
}
