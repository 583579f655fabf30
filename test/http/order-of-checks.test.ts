import { Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import { createHttpServer } from '../../src/http/http-server.ts';
import { queryInteger } from '../../src/http/query-parameters.ts';
import { scopes } from '../../src/http/scopes.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const invalidToken = {
  fault: { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } },
};
const forbidden = {
  status: 403,
  type: 'insufficient_permissions',
  message: 'Given request does not have required scopes. It is not authorized to perform this operation.',
};

const server = closeAfterAll(
  await startTestServer({
    extend: (app) => {
      app.post(
        '/rooms/:tenant/things/:thing',
        {
          config: { scopes: ['changelog.changelog_read', 'changelog.changelog_manage'] },
          schema: {
            body: Type.Object({ name: Type.String() }, { additionalProperties: false }),
            querystring: Type.Object({ page: Type.Optional(queryInteger({ minimum: 1, maximum: 10 })) }),
          },
        },
        async (request) => ({ credentials: request.credentials, thing: request.params }),
      );
    },
  }),
);
const token = await server.token('acme', { name: 'Jane Doe' });
const readerToken = await server.token('acme', { scope: 'ai.agent_read' });

function post(path: string, options: { token?: string; authorization?: string; body?: string; type?: string } = {}) {
  return server.call(path, {
    method: 'POST',
    body: options.body ?? '{"name":"n"}',
    ...(options.token === undefined ? {} : { token: options.token }),
    headers: {
      'content-type': options.type ?? 'application/json',
      ...(options.authorization === undefined ? {} : { authorization: options.authorization }),
    },
  });
}

describe('401 before anything else', () => {
  const everythingElseWrong = '/rooms/NO-TENANT/things/%zz?page=0';

  test.each([
    ['no Authorization header', undefined],
    ['an empty one', ''],
    ['another scheme', 'Basic YTpi'],
    ['a scheme without a token', 'Bearer'],
    ['blanks for a token', 'Bearer  '],
    ['two tokens', 'Bearer a b'],
    ['no JWT', 'Bearer abc'],
    ['a forged JWT', 'Bearer eyJhbGciOiJFUzI1NiJ9.e30.AAAA'],
  ])('%s', async (_case, authorization) => {
    const response = await post(everythingElseWrong, {
      body: 'not json',
      type: 'text/plain',
      ...(authorization === undefined ? {} : { authorization }),
    });
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toEqual(invalidToken);
  });

  test('a token in the query is none', async () => {
    const response = await post(`/rooms/acme/things/1?access_token=${token}`);
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual(invalidToken);
  });

  test('a body that is too large does not matter yet', async () => {
    const response = await post('/rooms/acme/things/1', { body: 'x'.repeat(1024 * 1024 + 1) });
    expect(response.status).toBe(401);
    await response.body?.cancel();
  });
});

test.each(['Bearer', 'bearer', 'BEARER'])('the scheme %s is read in any case', async (scheme) => {
  const response = await post('/rooms/acme/things/1', { authorization: `${scheme} ${token}` });
  expect(response.status).toBe(200);
});

test('the handler learns tenant, client, its name and the scopes', async () => {
  const response = await post('/rooms/acme/things/a%2Fb%20c', { token });
  const { credentials, thing } = (await response.json()) as {
    credentials: Record<string, unknown>;
    thing: Record<string, unknown>;
  };
  expect(credentials).toMatchObject({ tenant: 'acme', clientName: 'Jane Doe' });
  expect(credentials.clientId).toMatch(/^acme\.[0-9a-f]{20}$/);
  expect(credentials.scopes).toEqual(scopes);
  expect(thing).toEqual({ tenant: 'acme', thing: 'a/b c' });
});

describe('then the path, before tenant and scope', () => {
  test.each([
    ['upper case', 'ACME'],
    ['one letter', 'a'],
    ['a digit first', '1acme'],
    ['a hyphen', 'acme-1'],
    ['an underscore', 'acme_1'],
    ['a dot', 'acme.1'],
    ['64 characters', `a${'b'.repeat(63)}`],
    ['a thousand characters', 'a'.repeat(1000)],
    ['a line break at the end', 'acme%0A'],
    ['another script', '%D0%B0cme'],
    ['an escaped slash', 'acme%2Fx'],
    ['nothing', ''],
  ])('a tenant with %s is 400', async (_case, tenant) => {
    const response = await post(`/rooms/${tenant}/things/1`, { token: readerToken });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      status: 400,
      type: 'validation_violation',
      message: 'The tenant in the path is not a tenant name.',
      details: [{ field: 'tenant', message: 'must match ^[a-z][a-z0-9]+$ and have at most 63 characters' }],
    });
  });

  test.each(['%zz', '%', '%C3%28', '%ED%A0%80', '%ff', '%00', 'a%00b'])('%s in the path is 400', async (thing) => {
    const response = await post(`/rooms/other/things/${thing}`, { token: readerToken });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      status: 400,
      type: 'validation_violation',
      message: 'The path is not valid percent-encoded UTF-8 without NUL.',
    });
  });

  test('63 characters are a tenant name', async () => {
    const response = await post(`/rooms/a${'b'.repeat(62)}/things/1`, { token });
    expect(response.status).toBe(403);
  });
});

describe('then the tenant, then the scope, with one message for both', () => {
  test.each([
    ["another tenant's path", 'other', () => token],
    ['a tenant that does not exist', 'nobody', () => token],
    ['another tenant and no scope either', 'other', () => readerToken],
    ['no sufficient scope', 'acme', () => readerToken],
  ])('%s is 403, whatever the rest', async (_case, tenant, tokenOf) => {
    await server.createTenant('other');
    for (const rest of [{}, { body: 'not json' }, { type: 'text/plain' }]) {
      const response = await post(`/rooms/${tenant}/things/1?page=0`, { token: tokenOf(), ...rest });
      expect(response.status).toBe(403);
      expect(await response.json()).toEqual(forbidden);
    }
  });

  test('any one of the scopes suffices', async () => {
    for (const scope of ['changelog.changelog_read', 'changelog.changelog_manage']) {
      const response = await post('/rooms/acme/things/1', { token: await server.token('acme', { scope }) });
      expect(response.status).toBe(200);
    }
  });

  test('a scope that the client has but did not request for its token does not count', async () => {
    const client = await server.createClient('acme');
    const narrow = await server.tokenOf(client, 'ai.agent_read');
    expect((await post('/rooms/acme/things/1', { token: narrow })).status).toBe(403);
  });
});

describe('then the rest', () => {
  test('the content type', async () => {
    const response = await post('/rooms/acme/things/1?page=0', { token, type: 'text/plain' });
    expect(response.status).toBe(415);
  });

  test('the body, then the query', async () => {
    const both = await post('/rooms/acme/things/1?page=0', { token, body: '{}' });
    expect(await both.json()).toEqual({
      status: 400,
      type: 'validation_violation',
      message: 'The request body is not valid.',
      details: [{ field: 'name', message: 'is required' }],
    });
    const query = await post('/rooms/acme/things/1?page=0', { token });
    expect(await query.json()).toEqual({
      status: 400,
      type: 'validation_violation',
      message: 'page must be between 1 and 10',
      details: [{ field: 'page', message: 'page must be between 1 and 10' }],
    });
  });
});

describe('a route without a guard does not start', () => {
  const verifyAccessToken = () => {
    throw new Error('nobody is asked');
  };

  test('under a tenant without scopes', async () => {
    const app = await createHttpServer({ logger: server.context.logger, verifyAccessToken });
    expect(() => app.get('/rooms/:tenant/things', async () => 'open')).toThrow(
      'The route /rooms/:tenant/things is under a tenant and declares no scopes.',
    );
    expect(() => app.get('/rooms/:tenant', { config: { scopes: [] } }, async () => 'open')).toThrow('no scopes');
  });

  test('with scopes and under no tenant', async () => {
    const app = await createHttpServer({ logger: server.context.logger, verifyAccessToken });
    expect(() => app.get('/things', { config: { scopes: ['ai.agent_read'] } }, async () => '')).toThrow(
      'The route /things declares scopes and is under no tenant.',
    );
  });

  test('credentials of an open route cannot be read', async () => {
    const app = await createHttpServer({ logger: server.context.logger, verifyAccessToken });
    app.get('/things', async (request) => request.credentials);
    expect((await app.inject('/things')).statusCode).toBe(500);
  });
});
