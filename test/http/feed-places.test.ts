import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createHttpServer } from '../../src/http/http-server.ts';
import type { HttpServer } from '../../src/http/http-server-type.ts';

/** Follows the feed as long as its client does. The token is the name of the tenant. */
let app: HttpServer;
let letGo: () => void;
let following: number;

beforeEach(async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  letGo = resolve;
  following = 0;
  const scopes = ['changelog.changelog_read'] as const;
  app = await createHttpServer({
    logger: pino({ level: 'silent' }),
    verifyAccessToken: (tenant) => ({ tenant, clientId: tenant, clientName: tenant, scopes }),
  });
  app.get('/test/:tenant/follow', { config: { scopes, work: 'follows' } }, async () => {
    following += 1;
    await promise;
    return {};
  });
});

afterEach(() => app.close());

async function follow(tenant: string, signal = new AbortController().signal) {
  const headers = { authorization: `Bearer ${tenant}` };
  const answer = await app.inject({ path: `/test/${tenant}/follow`, headers, signal });
  return { statusCode: answer.statusCode, retryAfter: answer.headers['retry-after'], text: answer.payload };
}

const readers = (count: number, tenantOf: (number: number) => string) =>
  Array.from({ length: count }, (_none, number) => follow(tenantOf(number)));

test('1,000 readers of a tenant follow the feed; one more is 429 at once, and another tenant has places', async () => {
  const all = readers(1_000, () => 'acme');
  const refused = await follow('acme');
  expect(refused).toMatchObject({ statusCode: 429, retryAfter: '1' });
  expect(refused.text).toContain('The tenant has used its share of readers of the feed: at most 1000 at once.');
  expect(following).toBe(1_000);
  all.push(follow('rival'));
  await expect.poll(() => following).toBe(1_001);
  letGo();
  expect((await Promise.all(all)).every(({ statusCode }) => statusCode === 200)).toBe(true);
});

test('2,000 readers of all tenants follow it; one more is 429, until one of them has gone', async () => {
  const gone = new AbortController();
  const leaving = follow('leaving', gone.signal).catch(() => 'gone');
  const all = readers(1_999, (number) => `tenant${number}`);
  await expect.poll(() => following).toBe(2_000);
  const late = await follow('late');
  expect(late).toMatchObject({ statusCode: 429, retryAfter: '1' });
  expect(late.text).toContain('Others have the places that this process has for readers of the feed.');
  gone.abort();
  expect(await leaving).toBe('gone');
  all.push(follow('late'));
  await expect.poll(() => following).toBe(2_001);
  letGo();
  expect((await Promise.all(all)).every(({ statusCode }) => statusCode === 200)).toBe(true);
});
