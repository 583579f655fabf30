import { createHash, randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Browser } from './browser.ts';

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly scope: string;
}

export const loopback = 'http://127.0.0.1:33418/callback';

/** A browser in which a program asks for access: with the cookies of the console's session and of requests. */
export class ConsentBrowser {
  readonly browser: Browser;
  /** By name. */
  readonly #cookies = new Map<string, string>();

  constructor(browser: Browser) {
    this.browser = browser;
    this.#keepCookies([browser.cookie ?? '']);
  }

  async call(path: string, init: Parameters<Browser['call']>[1] = {}): Promise<Response> {
    this.browser.cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') || undefined;
    const answer = await this.browser.call(path, init);
    this.#keepCookies(answer.headers.getSetCookie());
    return answer;
  }

  async post(path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
    return await this.call(path, { method: 'POST', body: JSON.stringify(body), headers });
  }

  /** Opens an address of another site, as a person who is sent there. */
  async follow(address: string): Promise<Response> {
    const { pathname, search } = new URL(address, 'http://localhost');
    return await this.call(`${pathname}${search}`, { headers: { 'sec-fetch-site': 'cross-site' } });
  }

  /** What the page shows. */
  async shown(): Promise<Record<string, unknown>> {
    return (await (await this.call('/console/api/authorizations')).json()) as Record<string, unknown>;
  }

  async decide(request: unknown, allow = true): Promise<{ status: number; location: string }> {
    const answer = await this.post('/console/api/authorizations', { request, allow });
    const { location = '' } = (await answer.json()) as { location?: string };
    return { status: answer.status, location };
  }

  #keepCookies(all: readonly string[]): void {
    for (const cookie of all) {
      const [pair = ''] = cookie.split(';');
      const equals = pair.indexOf('=');
      if (equals <= 0) continue;
      if (equals === pair.length - 1) this.#cookies.delete(pair.slice(0, equals));
      else this.#cookies.set(pair.slice(0, equals), pair.slice(equals + 1));
    }
  }
}

/** A program that signs in. */
export class TestProgram {
  readonly #baseUrl: string;
  /** The public address. */
  readonly #address: string;
  clientId = '';
  verifier = '';
  readonly redirectUri: string;

  private constructor(baseUrl: string, address: string, redirectUri: string) {
    this.#baseUrl = baseUrl;
    this.#address = address;
    this.redirectUri = redirectUri;
  }

  static async register(
    { baseUrl }: { baseUrl: string },
    address: string,
    { name = 'Test program', redirectUri = loopback }: { name?: string; redirectUri?: string } = {},
  ): Promise<TestProgram> {
    const program = new TestProgram(baseUrl, address, redirectUri);
    const answer = await fetch(`${baseUrl}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ client_name: name, redirect_uris: [redirectUri] }),
    });
    expect(answer.status).toBe(201);
    program.clientId = ((await answer.json()) as { client_id: string }).client_id;
    return program;
  }

  /** Where the program sends its person. An empty parameter is left out. */
  authorizeUrl(tenant: string, parameters: Record<string, string> = {}): string {
    this.verifier = randomBytes(32).toString('base64url');
    const all = new URLSearchParams({
      response_type: 'code',
      client_id: this.clientId,
      redirect_uri: this.redirectUri,
      code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: 'a state',
      resource: `${this.#address}/mcp/${tenant}`,
      ...parameters,
    });
    for (const [name, value] of Object.entries(parameters)) if (value === '') all.delete(name);
    return `${this.#address}/oauth/authorize?${all}`;
  }

  async token(form: Record<string, string>): Promise<{ status: number; body: Tokens & { error?: string } }> {
    const answer = await fetch(`${this.#baseUrl}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams({ client_id: this.clientId, ...form }),
    });
    return { status: answer.status, body: (await answer.json()) as Tokens & { error?: string } };
  }

  redeem(location: string, changes: Record<string, string> = {}) {
    const code = new URL(location).searchParams.get('code') ?? '';
    const form = { grant_type: 'authorization_code', code, redirect_uri: this.redirectUri };
    return this.token({ ...form, code_verifier: this.verifier, ...changes });
  }

  refresh(token: string, changes: Record<string, string> = {}) {
    return this.token({ grant_type: 'refresh_token', refresh_token: token, ...changes });
  }

  /** The status of a call of `/mcp` with the token. */
  async call(token: string, tenant: string, path = `/mcp/${tenant}`): Promise<Response> {
    return await fetch(`${this.#baseUrl}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
  }

  async mayRead(token: string, tenant: string): Promise<boolean> {
    const { status } = await this.call(token, tenant);
    expect([200, 401]).toContain(status);
    return status === 200;
  }
}
