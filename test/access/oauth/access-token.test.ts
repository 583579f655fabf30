import { createHmac, createPrivateKey, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { request } from 'node:http';
import { decodeJwt, decodeProtectedHeader, exportSPKI, importJWK, type JWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { startTestServer } from '../../support/server/server.ts';

let now = Date.parse('2026-11-20T12:00:00Z');

const invalid = {
  fault: { faultstring: 'Invalid access token', detail: { errorcode: 'oauth.v2.InvalidAccessToken' } },
};
const expired = {
  fault: { faultstring: 'Access Token expired', detail: { errorcode: 'keymanagement.service.access_token_expired' } },
};

const server = closeAfterAll(
  await startTestServer({
    clock: { now: () => now },
    extend: (app) => {
      app.get('/rooms/:tenant', { config: { scopes: ['ai.agent_read'] } }, async () => 'fine');
    },
  }),
);
const token = await server.token('acme');
const header = { ...decodeProtectedHeader(token) };
const claims = decodeJwt(token);

async function call(candidate: string) {
  const response = await server.call('/rooms/acme', { token: candidate });
  return response.status === 200 ? 200 : { status: response.status, body: await response.json() };
}

const refused = { status: 401, body: invalid };

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function sign(key: KeyObject, head: unknown, body: unknown): string {
  const input = `${encode(head)}.${encode(body)}`;
  return `${input}.${createSign('sha256').update(input).sign({ key, dsaEncoding: 'ieee-p1363' }, 'base64url')}`;
}

/** The server's own key, which no forger has: with it, only the altered part can cause the refusal. */
async function ownKey(): Promise<KeyObject> {
  const { db, sealer } = server.context;
  const row = await db.selectFrom('oauth_signing_key').selectAll().executeTakeFirstOrThrow();
  const opened = sealer.open(row.sealed_key, `oauth signing key ${row.kid}`);
  return createPrivateKey({ key: JSON.parse(Buffer.from(opened ?? []).toString()), format: 'jwk' });
}

test('the token as it is, and signed once more with the own key, is accepted', async () => {
  expect(await call(token)).toBe(200);
  expect(await call(sign(await ownKey(), header, claims))).toBe(200);
});

describe('a forged token is invalid', () => {
  test('with another signature, down to its last bit', async () => {
    const [head, body, signature = ''] = token.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    for (const index of [0, 31, 32, 63]) {
      const altered = Buffer.from(bytes);
      altered[index] = (altered[index] ?? 0) ^ 1;
      expect(await call(`${head}.${body}.${altered.toString('base64url')}`)).toEqual(refused);
    }
    // Decoders ignore the spare bits of the last character; it still has to be the one that was issued.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    for (const last of alphabet) {
      const spelled = signature.slice(0, -1) + last;
      if (spelled !== signature) expect(await call(`${head}.${body}.${spelled}`)).toEqual(refused);
    }
    expect(await call(`${head}.${body}.`)).toEqual(refused);
    expect(await call(`${head}.${body}.${signature}=`)).toEqual(refused);
  });

  test('with claims changed under the old signature', async () => {
    const [head, , signature] = token.split('.');
    expect(await call(`${head}.${encode({ ...claims, scope: 'ai.agent_manage' })}.${signature}`)).toEqual(refused);
  });

  test('with alg none', async () => {
    for (const alg of ['none', 'None', 'NONE']) {
      const input = `${encode({ ...header, alg })}.${encode(claims)}`;
      expect(await call(`${input}.`)).toEqual(refused);
      expect(await call(`${input}.${token.split('.')[2]}`)).toEqual(refused);
    }
  });

  test('with HS256 and the public key for a secret', async () => {
    const { keys } = (await (await server.call('/.well-known/jwks.json')).json()) as { keys: JWK[] };
    const [jwk = {} as JWK] = keys;
    const pem = await exportSPKI((await importJWK(jwk, 'ES256', { extractable: true })) as CryptoKey);
    for (const secret of [pem, pem.trim(), JSON.stringify(jwk), String(jwk.x)]) {
      const input = `${encode({ ...header, alg: 'HS256' })}.${encode(claims)}`;
      expect(await call(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`)).toEqual(refused);
    }
  });

  test("with a stranger's key, under our key id, its own, in the header, or none", async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = publicKey.export({ format: 'jwk' });
    const heads = [
      header,
      { ...header, kid: 'stranger' },
      { alg: 'ES256', typ: 'at+jwt', jwk },
      { alg: 'ES256', typ: 'at+jwt', jku: `${server.baseUrl}/jwks` },
      { alg: 'ES256', typ: 'at+jwt' },
      { ...header, kid: '' },
      { ...header, kid: '__proto__' },
      { ...header, kid: "' or true --" },
    ];
    for (const head of heads) expect(await call(sign(privateKey, head, claims))).toEqual(refused);
  });

  test.each([
    ['another issuer', {}, { iss: 'https://elsewhere.example' }],
    ['no issuer', {}, { iss: undefined }],
    ['another audience', {}, { aud: 'https://elsewhere.example' }],
    ['no audience', {}, { aud: undefined }],
    ['the type of any JWT', { typ: 'JWT' }, {}],
    ['the type of an ID token', { typ: 'id+jwt' }, {}],
    ['no type', { typ: undefined }, {}],
    ['no expiry', {}, { exp: undefined }],
    ['an expiry that is no number', {}, { exp: '9999999999' }],
    ['no client', {}, { client_id: undefined }],
    ['no tenant', {}, { tenant: undefined }],
    ['a tenant that is no text', {}, { tenant: ['acme'] }],
    ['no scope', {}, { scope: undefined }],
    ['no subject', {}, { sub: undefined }],
    ['a start in the future', {}, { nbf: 32_503_680_000 }],
    ['a client that does not exist', {}, { client_id: `acme.${'f'.repeat(20)}` }],
    ["another tenant's name on this client", {}, { tenant: 'other' }],
    ['a header that must be understood', { crit: ['x'], x: 1 }, {}],
  ])('with %s, even with the own key', async (_case, head, body) => {
    const forged = sign(await ownKey(), { ...header, ...head }, { ...claims, ...body });
    expect(await call(forged)).toEqual(refused);
  });

  test.each(['', '.', '..', 'a.b', 'a.b.c.d', 'e30.e30.e30', '🙂', 'null', `${'a'.repeat(20_000)}.e30.AAAA`])(
    'which is no JWT: %j',
    async (text) => {
      const { hostname, port } = new URL(server.baseUrl);
      const status = await new Promise((resolve, reject) => {
        const authorization = Buffer.from(`Bearer ${text}`).toString('latin1');
        request({ hostname, port, path: '/rooms/acme', headers: { authorization } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on('error', reject)
          .end();
      });
      expect(status).toBe(401);
    },
  );

  test('whose segments have blanks or line breaks in them', async () => {
    const [head, body, signature] = token.split('.');
    expect(await call(`${head}.${body}%0A.${signature}`)).toEqual(refused);
    expect(await call(`${head}.=${body}.${signature}`)).toEqual(refused);
    expect(await call(`${head}+.${body}.${signature}`)).toEqual(refused);
  });
});

test('a token is valid for 14,399 seconds, and is then refused as expired', async () => {
  const fresh = await server.token('acme');
  const issued = Number(decodeJwt(fresh).iat) * 1000;
  now = issued + 14_398_999;
  expect(await call(fresh)).toBe(200);
  now = issued + 14_399_000;
  expect(await call(fresh)).toEqual({ status: 401, body: expired });
  // A token first seen after its expiry gets the same answer; a forged one does not.
  expect(await call(sign(await ownKey(), header, { ...claims, jti: 'unseen' }))).toEqual({
    status: 401,
    body: expired,
  });
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  expect(await call(sign(privateKey, header, claims))).toEqual(refused);
  const response = await server.call('/rooms/acme', { token: fresh });
  expect(response.headers.get('www-authenticate')).toBe('Bearer');
});
