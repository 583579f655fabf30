import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12);

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const client = await server.createClient('acme', { scope: 'changelog.changelog_read ai.agent_read', name: 'Jane' });

const form = 'application/x-www-form-urlencoded';

async function ask(body: string | Record<string, string>, headers: Record<string, string> = {}) {
  const response = await server.call('/oauth/token', {
    method: 'POST',
    body: typeof body === 'string' ? body : new URLSearchParams(body).toString(),
    headers: { 'content-type': form, ...headers },
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: JSON.parse(text), text };
}

function basic(id: string, secret: string): Record<string, string> {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

function inBody(more: Record<string, string> = {}): Record<string, string> {
  return { grant_type: 'client_credentials', client_id: client.clientId, client_secret: client.clientSecret, ...more };
}

const grant = { grant_type: 'client_credentials' };

describe('a token is issued', () => {
  const granted = {
    access_token: expect.any(String),
    token_type: 'Bearer',
    expires_in: 14_399,
    scope: 'changelog.changelog_read ai.agent_read tenant=acme',
  };

  test('to a client that authenticates by HTTP Basic, and is not to be stored', async () => {
    const { status, headers, body } = await ask(grant, basic(client.clientId, client.clientSecret));
    expect(status).toBe(200);
    expect(body).toEqual(granted);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('pragma')).toBe('no-cache');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test('to a client that authenticates in the body', async () => {
    expect(await ask(inBody())).toMatchObject({ status: 200, body: granted });
  });

  test('where id and secret are form-encoded before they are base64 (RFC 6749, 2.3.1)', async () => {
    const encoded = [client.clientId, client.clientSecret].map((text) =>
      [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join(''),
    );
    expect((await ask(grant, basic(encoded[0] ?? '', encoded[1] ?? ''))).status).toBe(200);
  });

  test('where the scheme is in another case, and the id is repeated in the body', async () => {
    const authorization = basic(client.clientId, client.clientSecret).authorization?.replace('Basic', 'bAsIC') ?? '';
    expect((await ask({ ...grant, client_id: client.clientId }, { authorization })).status).toBe(200);
  });

  test('with a charset in the content type, and with what else is sent ignored', async () => {
    const headers = { 'content-type': `${form}; charset=UTF-8` };
    expect((await ask(inBody({ audience: 'x', resource: 'y' }), headers)).status).toBe(200);
  });

  test('with an empty parameter, which counts as omitted', async () => {
    expect(await ask(inBody({ scope: '' }))).toMatchObject({ status: 200, body: granted });
  });
});

describe('scope', () => {
  test.each([
    ['ai.agent_read', 'ai.agent_read tenant=acme'],
    ['ai.agent_read changelog.changelog_read', 'ai.agent_read changelog.changelog_read tenant=acme'],
    ['ai.agent_read ai.agent_read', 'ai.agent_read tenant=acme'],
    ['ai.agent_read tenant=acme', 'ai.agent_read tenant=acme'],
  ])('%j is granted as %j', async (scope, granted) => {
    const { body } = await ask(inBody({ scope }));
    expect(body.scope).toBe(granted);
    expect(`${decodeJwt(body.access_token).scope} tenant=acme`).toBe(granted);
  });

  test.each([
    'ai.agent_manage',
    'ai.agent_read ai.agent_manage',
    'nonsense',
    'AI.AGENT_READ',
    'tenant=other',
    '"',
    'ä',
  ])('%j is invalid_scope', async (scope) => {
    const { status, body } = await ask(inBody({ scope }));
    expect(status).toBe(400);
    expect(body).toEqual({ error: 'invalid_scope', error_description: expect.any(String) });
  });
});

describe('errors are those of RFC 6749, 5.2', () => {
  test.each([
    ['no grant_type', { client_id: 'x', client_secret: 'y' }],
    ['an empty one', { grant_type: '', client_id: 'x', client_secret: 'y' }],
  ])('%s: invalid_request', async (_case, more) => {
    const { status, body } = await ask({ ...more, client_id: client.clientId, client_secret: client.clientSecret });
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' });
  });

  test.each(['password', 'authorization_code', 'refresh_token', 'implicit', 'urn:x:y', 'CLIENT_CREDENTIALS'])(
    'the grant type %s: unsupported_grant_type',
    async (grantType) => {
      const { status, body } = await ask(inBody({ grant_type: grantType, code: 'x', username: 'u', password: 'p' }));
      expect({ status, error: body.error }).toEqual({ status: 400, error: 'unsupported_grant_type' });
    },
  );

  test('a client that is unknown, revoked or has another secret: the same invalid_client', async () => {
    const revoked = await server.createClient('acme');
    await revokeClient(server.context.db, revoked.clientId);
    const attempts = [
      [client.clientId, 'wrong'],
      [client.clientId, `${client.clientSecret} `],
      [`acme.${'0'.repeat(20)}`, client.clientSecret],
      [`nobody.${'0'.repeat(20)}`, 'x'],
      ['not-an-id', 'x'],
      [revoked.clientId, revoked.clientSecret],
    ] as const;
    for (const [id, secret] of attempts) {
      const byBody = await ask({ ...grant, client_id: id, client_secret: secret });
      expect(byBody.status).toBe(401);
      expect(byBody.headers.get('www-authenticate')).toBeNull();
      expect(byBody.body).toEqual({ error: 'invalid_client', error_description: 'Invalid client: client is invalid' });
      expect(byBody.headers.get('cache-control')).toBe('no-store');
      const byBasic = await ask(grant, basic(id, secret));
      expect(byBasic.status).toBe(401);
      expect(byBasic.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
      expect(byBasic.text).toBe(byBody.text);
    }
  });

  test.each([
    ['no credentials', {}, {}],
    ['no secret', { client_id: 'x' }, {}],
    ['no id', { client_secret: 'x' }, {}],
    ['another scheme', {}, { authorization: 'Bearer x' }],
    ['Basic that is no base64', {}, { authorization: 'Basic $$$' }],
    ['Basic without a colon', {}, { authorization: `Basic ${Buffer.from('abc').toString('base64')}` }],
    ['Basic with a broken escape', {}, { authorization: `Basic ${Buffer.from('%zz:a').toString('base64')}` }],
  ])('%s: invalid_client', async (_case, more, headers: { authorization?: string }) => {
    const { status, body, headers: answered } = await ask({ ...grant, ...more }, headers);
    expect({ status, error: body.error }).toEqual({ status: 401, error: 'invalid_client' });
    expect(answered.has('www-authenticate')).toBe(headers.authorization !== undefined);
  });

  test('credentials both ways: invalid_request', async () => {
    const headers = basic(client.clientId, client.clientSecret);
    for (const more of [inBody(), { ...grant, client_id: 'other' }, { ...grant, client_secret: 'x' }]) {
      const { status, body } = await ask(more, headers);
      expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' });
    }
  });

  test.each(['grant_type', 'client_id', 'client_secret', 'scope'])('%s given twice: invalid_request', async (name) => {
    const twice = `${new URLSearchParams(inBody({ scope: 'ai.agent_read' }))}&${name}=${encodeURIComponent('x')}`;
    const { status, body } = await ask(twice);
    expect(status).toBe(400);
    expect(body).toEqual({ error: 'invalid_request', error_description: `The parameter ${name} is repeated` });
  });

  test.each([
    'client_secret=%ff',
    'client_secret=%zz',
    'client_id=a%00b&client_secret=x',
    'client_id=%C3%A4&client_secret=x',
  ])('%s: invalid_request', async (text) => {
    const { status, body } = await ask(`grant_type=client_credentials&${text}`);
    expect({ status, error: body.error }).toEqual({ status: 400, error: 'invalid_request' });
  });

  test.each(['application/json', 'text/plain', 'multipart/form-data', 'garbage', `${form}; charset=utf-16`])(
    'the content type %s: invalid_request',
    async (type) => {
      const { status, body } = await ask(JSON.stringify(inBody()), { 'content-type': type });
      expect({ status, body }).toEqual({
        status: 400,
        body: { error: 'invalid_request', error_description: 'The content must be application/x-www-form-urlencoded' },
      });
    },
  );

  test('no body at all, or credentials in the query: invalid_request', async () => {
    const query = new URLSearchParams(inBody());
    for (const path of ['/oauth/token', `/oauth/token?${query}`]) {
      const response = await server.call(path, { method: 'POST' });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ error: 'invalid_request' });
    }
  });

  test('16 KiB of form are read, more is 413', async () => {
    const padding = (length: number) => `&padding=${'x'.repeat(length)}`;
    const small = `${new URLSearchParams(inBody())}`;
    const room = 16 * 1024 - small.length - '&padding='.length;
    expect((await ask(small + padding(room))).status).toBe(200);
    expect(await ask(small + padding(room + 1))).toMatchObject({ status: 413, body: { type: 'payload_too_large' } });
  });
});

describe('the token', () => {
  test('is an RFC 9068 access token that verifies with the published keys', async () => {
    const { body } = await ask(inBody({ scope: 'ai.agent_read' }));
    const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', server.baseUrl));
    const { issuer } = server.context.oauth;
    const { payload, protectedHeader } = await jwtVerify(body.access_token, keys, {
      issuer,
      audience: issuer,
      typ: 'at+jwt',
      algorithms: ['ES256'],
      currentDate: new Date(now),
    });
    expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: expect.any(String) });
    expect(payload).toEqual({
      iss: issuer,
      sub: client.clientId,
      aud: issuer,
      client_id: client.clientId,
      tenant: 'acme',
      scope: 'ai.agent_read',
      iat: now / 1000,
      exp: now / 1000 + 14_399,
      jti: expect.any(String),
    });
  });

  test('names the installation as issuer, the same for all processes, or the public address', async () => {
    const second = await startTestServer({ database: server.database });
    expect(second.context.oauth.issuer).toBe(server.context.oauth.issuer);
    expect(server.context.oauth.issuer).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
    await second.close();
    const environment = { ANNALS_BASE_URL: 'https://annals.example/' };
    const named = await startTestServer({ database: server.database, environment });
    const token = await named.tokenOf(client);
    expect(decodeJwt(token)).toMatchObject({ iss: 'https://annals.example', aud: 'https://annals.example' });
    await named.close();
  });

  test('the published keys hold nothing private', async () => {
    const response = await server.call('/.well-known/jwks.json');
    expect(response.status).toBe(200);
    const { keys } = (await response.json()) as { keys: Record<string, unknown>[] };
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
      expect(key).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' });
    }
    const { body } = await ask(inBody());
    expect(keys.map(({ kid }) => kid)).toContain(decodeProtectedHeader(body.access_token).kid);
  });
});

test('a fresh installation publishes a key before it has issued a token', async () => {
  const fresh = await startTestServer();
  const { keys } = (await (await fresh.call('/.well-known/jwks.json')).json()) as { keys: unknown[] };
  expect(keys).toHaveLength(1);
  await fresh.close();
});
