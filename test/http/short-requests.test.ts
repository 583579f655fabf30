import { fastify } from 'fastify';
import { afterAll, expect, test } from 'vitest';
import { othersHaveShortWork } from '../../src/core/fairness/time-slice.ts';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { countShortRequests } from '../../src/http/request-turns.ts';

const app: HttpServer = fastify();
/** What others would see at each step of the last request. */
let seen: Record<string, boolean> = {};

app.decorateRequest('verifiedCredentials', null);
countShortRequests(app);
app.addHook('onRequest', async (request) => {
  seen = { token: othersHaveShortWork('another') };
  request.verifiedCredentials = { tenant: 'acme', clientId: 'c', clientName: 'c', scopes: [] };
});
app.addHook('preValidation', async () => {
  seen.body = othersHaveShortWork('another');
  seen.own = othersHaveShortWork('acme');
});
app.addHook('onSend', async () => {
  seen.answer = othersHaveShortWork('another');
});
const handler = async () => {
  seen.work = othersHaveShortWork('another');
  return 'done';
};
app.post('/works', handler);
app.post('/calls', { config: { work: 'calls' } }, handler);

afterAll(() => app.close());

async function post(url: string, bytes: number): Promise<typeof seen> {
  const body = `"${'a'.repeat(bytes - 2)}"`;
  await app.inject({ method: 'POST', url, body, headers: { 'content-type': 'application/json' } });
  return seen;
}

test('others leave room for a request with a body of 20,000 bytes, until its answer begins', async () => {
  const expected = { token: true, body: true, own: false, work: true, answer: false };
  expect(await post('/works', 20_000)).toEqual(expected);
});

test('they leave none for a longer body, or one of unknown length', async () => {
  const expected = { token: false, body: false, own: false, work: false, answer: false };
  expect(await post('/works', 20_001)).toEqual(expected);
  const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  await app.inject({ method: 'POST', url: '/works', body: '1', headers });
  expect(seen).toEqual(expected);
});

test('a call of a provider has room until its body is checked', async () => {
  const expected = { token: true, body: true, own: false, work: false, answer: false };
  expect(await post('/calls', 100)).toEqual(expected);
});

test('a request that ends before its answer leaves nothing behind', async () => {
  await app.inject({ method: 'POST', url: '/nowhere' });
  expect(othersHaveShortWork('another')).toBe(false);
});
