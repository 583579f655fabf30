import { beforeEach, expect, test } from 'vitest';
import { Annals, ApiError, type CursorPage, type Page } from '../../clients/typescript/src/index.ts';
import { JsonNumber, type JsonObject, parseJson, stringifyJson } from '../../clients/typescript/src/json/index.ts';
import { actor, and, changeType, entity, field, glob } from '../../clients/typescript/src/query/index.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';
import { collect } from './collect.ts';

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: { ANNALS_SHARED_PROVIDER_TOKEN: 'shared-token', OPENAI_BASE_URL: vendor.baseUrl },
  }),
);
const annals = new Annals({
  baseUrl: server.baseUrl,
  ...(await server.createClient('acme', { name: 'Jane "J" Doe' })),
});
await annals.customEntities.put('SHELF', { name: { en: 'Shelf' } });
for (let slots = 1; slots <= 7; slots += 1) await annals.instances('SHELF').put(`s-${slots}`, { slots, name: 'Aisle' });

beforeEach(() => vendor.behave({ kind: 'answer' }));

async function errorOf(call: PromiseLike<unknown>): Promise<ApiError> {
  const outcome = await call.then(
    () => new Error('the call succeeded'),
    (error: unknown) => error,
  );
  if (!(outcome instanceof ApiError)) throw outcome;
  return outcome;
}

test('a list continues by cursors, and the way back is a mirror of the way there', async () => {
  const shelves = annals.instances('SHELF');
  const forward: CursorPage<unknown>[] = [];
  let page = await shelves.list({ sort: 'slots:DESC', pageSize: 3, q: field('slots').atLeast(1), total: true });
  expect(page).toMatchObject({ total: 7, prev: undefined });
  for (let next: typeof page | undefined = page; next !== undefined; next = await next.nextPage()) {
    forward.push(next);
    page = next;
  }
  expect(page).toMatchObject({ total: undefined, next: undefined });
  const ids = (pages: readonly Page<unknown>[]) =>
    pages.map(({ items }) => items.map((item) => Reflect.get(Object(item), 'id')));
  expect(ids(forward)).toEqual([['s-7', 's-6', 's-5'], ['s-4', 's-3', 's-2'], ['s-1']]);
  const back: CursorPage<unknown>[] = [page];
  for (let prev = await page.previousPage(); prev !== undefined; prev = await prev.previousPage()) back.unshift(prev);
  expect(ids(back)).toEqual(ids(forward));
  const all = await collect(shelves.list({ sort: 'slots:DESC', pageSize: 2 }));
  expect(all.map(({ id }) => id)).toEqual(ids(forward).flat());
  expect(
    (await collect(shelves.list({ sort: 'slots:DESC', pageSize: 2 }).pages())).map(({ items }) => items.length),
  ).toEqual([2, 2, 2, 1]);
});

test('fields selects parts of items', async () => {
  const { items } = await annals
    .instances('SHELF')
    .list({ fields: 'slots', q: field('name').is(glob('A*')), pageSize: 1 });
  expect(items).toEqual([{ id: 's-1', slots: 1 }]);
});

test('custom entities are made, read, changed and deleted', async () => {
  await annals.customEntities.create({ id: 'BOX', name: { en: 'Box' } });
  const boxes = annals.instances('BOX');
  const { id } = await boxes.create({ size: 1 });
  expect(await boxes.put('given/id', { size: 2 })).toEqual({ created: true });
  expect(await boxes.put('given/id', { size: 3 })).toEqual({ created: false });
  await boxes.patch('given/id', [{ op: 'replace', path: '/size', value: 4 }]);
  expect(await boxes.get('given/id')).toMatchObject({ id: 'given/id', size: 4 });
  expect(await errorOf(boxes.put(id, { metadata: { version: 7 } }))).toMatchObject({
    status: 409,
    type: 'conflict_resource',
  });
  expect(await errorOf(annals.customEntities.delete('BOX'))).toMatchObject({ status: 400 });
  for (const each of [id, 'given/id']) await boxes.delete(each);
  await annals.customEntities.delete('BOX');
  const types = await collect(annals.customEntities.list({ q: 'id:(BOX, SHELF)' }));
  expect(types.map((type) => type.id)).toEqual(['SHELF']);
});

test('exact calls keep every digit and the order of members', async () => {
  await annals.customEntities.put('EXACT', { name: { en: 'Exact' } });
  const shelves = annals.exact.instances('EXACT');
  const price = new JsonNumber('1.10');
  await shelves.put('exact', {
    slots: 0,
    price,
    by: new Map([
      ['10', new JsonNumber('1E400')],
      ['2', new JsonNumber('-0')],
    ]),
  });
  const stored = await shelves.get('exact');
  expect(stringifyJson(stored.get('price'))).toBe('1.10');
  expect(stringifyJson(stored.get('by'))).toBe('{"10":1E400,"2":-0}');
  expect((await annals.instances('EXACT').get('exact')).price).toBe(1.1);
  const { items, totalElements } = await annals.exact.history.list({ q: 'entity:EXACT entityId:exact' });
  expect(totalElements).toBe(1);
  expect(items[0]).toMatchObject({ entityId: 'exact', type: 'create', related: [] });
  expect(items[0]?.paths.get('price')).toEqual({ after: price });
  expect(items[0]?.paths.get('by.10')?.after).toEqual(new JsonNumber('1E400'));
  await annals.configurations.create([{ key: 'rate', value: price }]);
  expect(await annals.exact.configurations.get('rate')).toEqual({
    key: 'rate',
    value: price,
    version: 1,
    secured: false,
  });
  expect(await annals.exact.configurations.list({ keys: ['rate'] })).toHaveLength(1);
  const schema = parseJson(
    '{"name":{"en":"Exact"},"jsonSchema":{"properties":{"10":{"maximum":1.10},"2":true}}}',
  ) as JsonObject;
  await annals.exact.customEntities.put('EXACT', schema);
  const type = await annals.exact.customEntities.get('EXACT');
  expect(stringifyJson(type.get('jsonSchema'))).toBe('{"properties":{"10":{"maximum":1.10},"2":true}}');
});

test('settings are made, listed, replaced and deleted', async () => {
  await annals.configurations.create([
    { key: 'site', value: { name: 'Main' } },
    { key: 'pass', value: 'x', secured: true },
  ]);
  expect(await annals.configurations.get('pass')).toMatchObject({ value: '********', secured: true });
  expect(await annals.configurations.replace('site', { value: 1, version: 1 })).toMatchObject({ version: 2 });
  expect(await errorOf(annals.configurations.replace('site', { value: 2, version: 1 }))).toMatchObject({ status: 409 });
  expect((await annals.configurations.list({ keys: ['site', 'pass'] })).map(({ key }) => key).sort()).toEqual([
    'pass',
    'site',
  ]);
  await annals.configurations.delete('site');
  expect(await errorOf(annals.configurations.get('site'))).toMatchObject({ type: 'resource_not_found', status: 404 });
});

test('an error names its fields, and the request in the log of the service', async () => {
  const error = await errorOf(annals.history.list({ q: 'entity:order status:OPEN' }));
  expect(error).toMatchObject({
    status: 400,
    type: 'validation_violation',
    message: 'Unsupported query field: status',
    attempts: 1,
  });
  expect(error.details).toEqual([{ field: 'q', message: expect.stringContaining('At position 14') }]);
  expect(server.logLines.some((line) => line.includes(String(error.requestId)))).toBe(true);
  const reader = new Annals({
    baseUrl: server.baseUrl,
    ...(await server.createClient('acme', { scope: 'ai.agent_read' })),
  });
  expect(await errorOf(reader.history.list())).toMatchObject({ status: 403, type: 'insufficient_permissions' });
});

test('agents chat at once, in a stream and by a job, in one session', async () => {
  expect(await annals.agents.put('desk', { name: { en: 'Desk' }, llmConfig: { provider: 'shared' } })).toEqual({
    created: true,
  });
  await annals.agents.patch('desk', [{ op: 'ADD', path: '/name/de', value: 'Tisch' }]);
  expect(await annals.agents.get('desk')).toMatchObject({ name: { en: 'Desk', de: 'Tisch' } });
  expect((await collect(annals.agents.list())).map(({ id }) => id)).toEqual(['desk']);
  const { sessionId, message } = await annals.chat.send({ agentId: 'desk', message: 'Hello' });
  expect(message).toBe('Hello there');
  vendor.behave({ kind: 'answer', text: 'An answer in more parts than one' });
  const stream = annals.chat.stream({ agentId: 'desk', message: 'And then?', sessionId });
  const parts = await collect(stream);
  expect(parts.length).toBeGreaterThan(1);
  expect(parts.join('')).toBe('An answer in more parts than one');
  expect(await stream.answer()).toMatchObject({ sessionId, message: 'An answer in more parts than one' });
  const streamed = await annals.logs.requests.get(stream.requestId ?? '');
  expect(streamed).toMatchObject({ sessionId, requestId: stream.requestId });
  expect(await annals.chat.stream({ agentId: 'desk', message: 'Once more?' }).answer()).toMatchObject({
    agentId: 'desk',
  });
  const queued = await annals.chat.queue({ agentId: 'desk', message: 'Sum it up.', sessionId });
  expect(queued.sessionId).toBe(sessionId);
  expect(await annals.jobs.wait(queued.jobId)).toMatchObject({ status: 'success', sessionId });
  const [session] = (await annals.logs.sessions.list({ q: field('sessionId').is(sessionId) })).items;
  expect(session).toMatchObject({ id: sessionId, agents: ['desk'] });
  const logs = await collect(annals.logs.requests.list({ q: field('sessionId').is(sessionId), pageSize: 2 }));
  expect(logs).toHaveLength(3);
  expect(await annals.logs.requests.get(logs[0]?.id ?? '')).toEqual(logs[0]);
  await annals.agents.delete('desk');
  expect(await errorOf(annals.chat.send({ agentId: 'desk', message: 'Hello' }))).toMatchObject({ status: 404 });
  expect(await errorOf(annals.chat.stream({ agentId: 'desk', message: 'Hello' }).answer())).toMatchObject({
    status: 404,
  });
});

test('leaving the loop ends the stream, and there is no answer', async () => {
  await annals.agents.put('left', { name: { en: 'Left' }, llmConfig: { provider: 'shared' } });
  vendor.behave({ kind: 'answer', text: 'An answer in more parts than one' });
  const stream = annals.chat.stream({ agentId: 'left', message: 'Hello' });
  for await (const _ of stream) break;
  await expect(stream.answer()).rejects.toThrow('left before its end');
});

test('an export is started, waited for, and read entry by entry', async () => {
  const mine = and(entity('SHELF'), changeType('create'), actor('Jane "J" Doe'));
  const { jobId } = await annals.jobs.export({ q: mine, format: 'NDJSON' });
  expect(await annals.jobs.wait(jobId, { limit: 60_000 })).toMatchObject({ type: 'EXPORT', metadata: { entries: 7 } });
  const listed = await collect(annals.history.list({ q: mine }));
  expect((await collect(annals.jobs.entries(jobId))).sort((a, b) => (a.entityId < b.entityId ? 1 : -1))).toEqual(
    listed,
  );
  const { body, bytes, contentType } = await annals.jobs.content(jobId);
  expect(contentType).toContain('application/x-ndjson');
  expect((await new Response(body).arrayBuffer()).byteLength).toBe(bytes);
  expect((await collect(annals.jobs.list({ q: field('type').is('EXPORT') }))).map(({ id }) => id)).toEqual([jobId]);
  await annals.jobs.delete(jobId);
  expect(await errorOf(annals.jobs.wait(jobId))).toMatchObject({ status: 404 });
});

test('a wait ends with its limit or its signal, and a job that failed is an error', async () => {
  vendor.behave({ kind: 'hang' });
  await annals.agents.put('slow', { name: { en: 'Slow' }, llmConfig: { provider: 'shared' } });
  const { jobId } = await annals.chat.queue({ agentId: 'slow', message: 'Hello' });
  expect(await errorOf(annals.jobs.wait(jobId, { limit: 50 }))).toMatchObject({ type: 'timeout' });
  const reason = new Error('no longer wanted');
  await expect(annals.jobs.wait(jobId, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await annals.jobs.delete(jobId);
  vendor.behave({ kind: 'status', status: 400 });
  const failing = await annals.chat.queue({ agentId: 'slow', message: 'Hello' });
  expect(await errorOf(annals.jobs.wait(failing.jobId))).toMatchObject({
    status: undefined,
    type: 'validation_violation',
  });
});

test('a completion is streamed in parts, and its answer has the usage', async () => {
  vendor.behave({ kind: 'answer', text: 'one two', usage: { input: 5, output: 2 } });
  const stream = annals.completions.stream({ messages: [{ role: 'USER', content: 'Hello' }] });
  const parts: string[] = [];
  for await (const text of stream) parts.push(text);
  expect(parts).toEqual(['one ', 'two']);
  expect(await stream.answer()).toEqual({
    result: 'one two',
    finishReason: 'stop',
    usage: { inputTokens: 5, outputTokens: 2 },
  });
});
