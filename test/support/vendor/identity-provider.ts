import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';

/** What one of its answers has in place of what is right. */
export interface Wrong {
  claims?: Record<string, unknown>;
  /** The ID token is signed with a key that the provider does not publish. */
  foreignKey?: boolean;
  alg?: 'HS256' | 'none';
}

interface Answer {
  status: number;
  answer: object;
  /** The connection ends in the middle of it. */
  cut?: boolean;
}

interface Begun {
  nonce: string;
  challenge: string;
  redirect: string;
}

/** An OpenID provider that speaks the protocol over HTTP on loopback, with its faults. */
export class TestIdentityProvider {
  readonly clientId = 'annals';
  readonly clientSecret = 'a secret of the provider';
  /** The claims of who signs in next. */
  claims: Record<string, unknown> = { sub: 'u-1' };
  wrong: Wrong = {};
  /** It answers every request with 503. */
  isAway = false;
  givesRefreshTokens = true;
  /** What the userinfo endpoint answers beside `sub`; undefined: there is none. */
  userInfo: Record<string, unknown> | undefined;
  /** So many requests to the userinfo endpoint are answered with 503. */
  userInfoFailures = 0;
  /** So many requests for its keys are answered with 500. */
  keyFailures = 0;
  /** So many answers to a renewal end in the middle, after the refresh token was replaced. */
  cutRenewals = 0;
  /** A refresh token that was replaced still renews, as where a provider has a grace period. */
  reusesRefreshTokens = false;
  /** Scopes that its description lists; undefined: none. */
  scopes: string[] | undefined;
  /** The last ID token that it issued. */
  lastIdToken = '';
  /** How often its keys were read. */
  keyReads = 0;
  /** How often its description was requested, also while it was away. */
  descriptionReads = 0;
  /** The provider ends a sign-in. */
  endedSubjects = new Set<string>();
  /** Renewal requests since `hold` was called. */
  renewals = 0;
  #held: Promise<void> | undefined;
  readonly #codes = new Map<string, Begun>();
  readonly #refreshTokens = new Map<string, Record<string, unknown>>();
  readonly #server: Server;
  #keys: { own: CryptoKey; foreign: CryptoKey; published: { kid: string } };

  private constructor(server: Server, keys: { own: CryptoKey; foreign: CryptoKey; published: { kid: string } }) {
    this.#server = server;
    this.#keys = keys;
  }

  static async start(): Promise<TestIdentityProvider> {
    const own = await generateKeyPair('RS256');
    const foreign = await generateKeyPair('RS256');
    const published = { ...(await exportJWK(own.publicKey)), kid: 'k', alg: 'RS256', use: 'sig' };
    const server = createServer((request, response) => {
      void text(request).then(async (body) => {
        const { status, answer, cut = false } = await provider.#answer(request.url ?? '', new URLSearchParams(body));
        const json = JSON.stringify(answer);
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
        if (cut) response.write(json.slice(0, json.length / 2), () => response.destroy());
        else response.end(json);
      });
    });
    const provider = new TestIdentityProvider(server, { own: own.privateKey, foreign: foreign.privateKey, published });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The person signs in there: where the browser is sent back to. */
  signIn(authorization: URL): URL {
    const parameters = authorization.searchParams;
    const code = randomUUID();
    const redirect = parameters.get('redirect_uri') ?? '';
    this.#codes.set(code, {
      nonce: parameters.get('nonce') ?? '',
      challenge: parameters.get('code_challenge') ?? '',
      redirect,
    });
    const callback = new URL(redirect);
    callback.search = new URLSearchParams({ code, state: parameters.get('state') ?? '', iss: this.issuer }).toString();
    return callback;
  }

  /** Answers no request to renew before the function that it returns is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#held = promise;
    this.renewals = 0;
    return resolve;
  }

  /** A signed logout token. Claims that are undefined are left out. */
  async logoutToken(claims: Record<string, unknown>, wrong: Wrong & { typ?: string } = {}): Promise<string> {
    const now = Math.floor(Date.now() / 1_000);
    const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
    const all = {
      iss: this.issuer,
      aud: this.clientId,
      iat: now,
      exp: now + 120,
      jti: randomUUID(),
      events,
      ...claims,
    };
    return await this.#sign(JSON.parse(JSON.stringify(all)), { typ: 'logout+jwt', ...wrong });
  }

  /** Signs with a new key from now on, and publishes that one alone, under another id unless this one is given. */
  async rotateKeys(kid: string = randomUUID()): Promise<void> {
    const { privateKey: own, publicKey } = await generateKeyPair('RS256');
    const published = { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' };
    this.#keys = { ...this.#keys, own, published };
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer(path: string, form: URLSearchParams): Promise<Answer> {
    if (path === '/.well-known/openid-configuration') this.descriptionReads += 1;
    if (this.isAway) return { status: 503, answer: { error: 'temporarily_unavailable' } };
    if (path === '/.well-known/openid-configuration') return { status: 200, answer: this.#description() };
    if (path === '/jwks') {
      this.keyReads += 1;
      this.keyFailures -= 1;
      if (this.keyFailures >= 0) return { status: 500, answer: { error: 'server_error' } };
      return { status: 200, answer: { keys: [this.#keys.published] } };
    }
    if (path === '/userinfo') {
      this.userInfoFailures -= 1;
      if (this.userInfoFailures >= 0) return { status: 503, answer: { error: 'temporarily_unavailable' } };
      return { status: 200, answer: { sub: this.claims.sub, ...this.userInfo } };
    }
    if (path !== '/token') return { status: 404, answer: {} };
    if (form.get('client_secret') !== this.clientSecret) return { status: 401, answer: { error: 'invalid_client' } };
    return form.get('grant_type') === 'refresh_token' ? await this.#renew(form) : await this.#exchange(form);
  }

  #description(): object {
    const { issuer } = this;
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      end_session_endpoint: `${issuer}/sign-out`,
      ...(this.userInfo && { userinfo_endpoint: `${issuer}/userinfo` }),
      ...(this.scopes && { scopes_supported: this.scopes }),
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    };
  }

  async #exchange(form: URLSearchParams): Promise<Answer> {
    const code = form.get('code') ?? '';
    const begun = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (begun === undefined || begun.challenge !== challenge || begun.redirect !== form.get('redirect_uri')) {
      return { status: 400, answer: { error: 'invalid_grant' } };
    }
    return await this.#tokens({ ...this.claims, nonce: begun.nonce });
  }

  async #renew(form: URLSearchParams): Promise<Answer> {
    this.renewals += 1;
    await this.#held;
    const token = form.get('refresh_token') ?? '';
    const known = this.#refreshTokens.get(token);
    if (!this.reusesRefreshTokens) this.#refreshTokens.delete(token);
    if (known === undefined || this.endedSubjects.has(String(known.sub))) {
      return { status: 400, answer: { error: 'invalid_grant' } };
    }
    this.cutRenewals -= 1;
    return { ...(await this.#tokens({ ...this.claims, sub: known.sub })), cut: this.cutRenewals >= 0 };
  }

  async #tokens(claims: Record<string, unknown>): Promise<Answer> {
    const now = Math.floor(Date.now() / 1_000);
    const all = { iss: this.issuer, aud: this.clientId, iat: now, exp: now + 600, ...claims, ...this.wrong.claims };
    this.lastIdToken = await this.#sign(all);
    const answer = { access_token: randomUUID(), token_type: 'Bearer', expires_in: 600, id_token: this.lastIdToken };
    if (!this.givesRefreshTokens) return { status: 200, answer };
    const refresh = randomUUID();
    this.#refreshTokens.set(refresh, claims);
    return { status: 200, answer: { ...answer, refresh_token: refresh } };
  }

  /** The id of the key that it signs with. */
  get kid(): string {
    return this.#keys.published.kid;
  }

  async #sign(claims: Record<string, unknown>, how: Wrong & { typ?: string } = this.wrong): Promise<string> {
    const { alg, foreignKey = false, typ } = how;
    const type = typ === undefined ? {} : { typ };
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    if (alg === 'none') return `${part({ alg: 'none', ...type })}.${part(claims)}.`;
    if (alg === 'HS256')
      return await new SignJWT(claims)
        .setProtectedHeader({ alg, ...type })
        .sign(Buffer.from(this.clientSecret.padEnd(32)));
    const key = foreignKey ? this.#keys.foreign : this.#keys.own;
    return await new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid: this.#keys.published.kid, ...type })
      .sign(key);
  }
}
