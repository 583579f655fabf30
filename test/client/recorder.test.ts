import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  Annals,
  ApiError,
  type ChangeEntry,
  type Recorder,
  type RecorderOptions,
} from '../../clients/typescript/src/index.ts';
import { JsonNumber } from '../../clients/typescript/src/json/index.ts';
import {
  actorId,
  and,
  anyValue,
  context,
  correlationId,
  entity,
  entityId,
  glob,
  noValue,
  onBehalfOf,
  onBehalfOfId,
  type Query,
} from '../../clients/typescript/src/query/index.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Random } from '../support/oracle/random.ts';
import { startFaultyProxy } from '../support/server/faulty-proxy.ts';
import { eventually, letOthersWork } from '../support/server/patience.ts';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const service = closeAfterAll(await startTestRecorder(server));
const proxy = closeAfterAll(await startFaultyProxy(service.baseUrl));
const client = await server.createClient('acme', { name: 'Shop' });
const annals = new Annals({ baseUrl: server.baseUrl, ...client });

beforeEach(() => {
  proxy.requests.length = 0;
  proxy.behave(() => ({ kind: 'none' }));
});

const createRecorder = (options: RecorderOptions = {}) => annals.recorder({ url: proxy.baseUrl, ...options });
const update = (type: string, id: string, count: number) =>
  ({ op: 'update', entity: type, entityId: id, before: { count: count - 1 }, after: { count } }) as const;

async function entriesOf(type: string, id?: string): Promise<ChangeEntry[]> {
  const entries: ChangeEntry[] = [];
  const q = id === undefined ? entity(type) : and(entity(type), entityId(id));
  for await (const entry of annals.history.list({ q, size: 100 })) entries.push(entry);
  return entries;
}

/**
 * A recorder that gives up soon, and the failure of its first attempt: before that one it has no error to give up with.
 */
function impatient(): { one: Recorder; failed: Promise<ApiError> } {
  const { promise: failed, resolve } = Promise.withResolvers<ApiError>();
  return { one: createRecorder({ delay: 0, timeout: 100, onRetry: resolve }), failed };
}

const countsOf = (entries: readonly ChangeEntry[]) => entries.map(({ paths }) => paths.count?.after);

test('changes share requests, keep their order and their digits, and are committed when flush resolves', async () => {
  const recorder = createRecorder();
  for (let count = 1; count <= 30; count += 1) await recorder.record(update('flushed', 'f-1', count));
  await recorder.record({
    op: 'insert',
    entity: 'flushed',
    entityId: 'f-2',
    actor: 'Jane Doe',
    after: { price: new JsonNumber('1.10') },
  });
  expect(await recorder.flush()).toMatchObject({ read: 31, recorded: 31, duplicate: 0, rejected: 0 });
  expect(proxy.requests).toHaveLength(1);
  expect(countsOf(await entriesOf('flushed', 'f-1'))).toEqual(Array.from({ length: 30 }, (_, index) => 30 - index));
  const { items } = await annals.exact.history.list({ q: and(entity('flushed'), entityId('f-2')) });
  expect(items[0]).toMatchObject({ actor: 'Jane Doe' });
  expect(items[0]?.paths.get('price')?.after).toEqual(new JsonNumber('1.10'));
  await recorder.close();
  await expect(recorder.record(update('flushed', 'f-1', 31))).rejects.toThrow('closed');
});

test('events are recorded with who, for whom and from where, and found by it with the query builder', async () => {
  const recorder = createRecorder();
  const jane = { actor: 'Jane Doe', actorId: 'u-17' };
  const ip = '203.0.113.7';
  await recorder.event({ entity: 'sign-in', ...jane, context: { ip, 'user-agent': 'curl/8' }, correlationId: 'req-1' });
  await recorder.event({
    entity: 'export',
    entityId: 'e-1',
    name: 'Orders of May',
    actor: 'Support',
    onBehalfOf: { name: 'Acme Ltd', id: 'c-1' },
    related: [{ entity: 'customer', entityId: 'c-1' }],
    details: { rows: new JsonNumber('1200.0') },
  });
  await recorder.event({ entity: 'sign-in', ...jane, actor: 'Jane Miller' });
  expect(await recorder.close()).toMatchObject({ read: 3, recorded: 3 });
  const found = async (q: Query) => {
    const { items } = await annals.history.list({ q: and(entity('sign-in', 'export'), q) });
    return items.map(({ type, actor: name, entityId: id }) => `${type} ${name}${id === 'e-1' ? ' e-1' : ''}`);
  };
  expect(await found(actorId('u-17'))).toEqual(['create Jane Miller', 'create Jane Doe']);
  expect(await found(actorId(noValue))).toEqual(['create Support e-1']);
  expect(await found(and(onBehalfOf(glob('Acme*')), onBehalfOfId('c-1')))).toEqual(['create Support e-1']);
  expect(await found(onBehalfOf(anyValue))).toEqual(['create Support e-1']);
  expect(await found(correlationId('req-1', 'req-2'))).toEqual(['create Jane Doe']);
  expect(await found(and(context('ip', ip), context('user-agent', glob('curl/*'))))).toEqual(['create Jane Doe']);
  expect(await found(context('ip', noValue))).toHaveLength(2);
  const [, , signedIn] = (await annals.history.list({ q: entity('sign-in', 'export') })).items;
  expect(signedIn).toMatchObject({ ...jane, correlationId: 'req-1', paths: {} });
  const [exported] = (await annals.exact.history.list({ q: entity('export') })).items;
  expect(exported?.onBehalfOf).toEqual({ name: 'Acme Ltd', id: 'c-1' });
  expect(exported?.paths.get('rows')).toEqual({ after: new JsonNumber('1200.0') });
});

test('whatever breaks on the way, each change is recorded once and in its order', async () => {
  const random = new Random();
  const faults = [{ kind: 'cut' }, { kind: 'lose' }, { kind: 'half' }] as const;
  const answers = [429, 502, 503].map(
    (status) => ({ kind: 'answer', status, headers: { 'retry-after': '0' } }) as const,
  );
  proxy.behave(() => (random.below(5) < 2 ? random.pick([...faults, ...answers]) : { kind: 'none' }));
  const retried: string[] = [];
  const recorder = createRecorder({ batch: 30, delay: 1, onRetry: ({ type }) => void retried.push(type) });
  for (let count = 1; count <= 300; count += 1) await recorder.record(update('broken', `b-${count % 3}`, count));
  const { recorded, duplicate, rejected } = await recorder.close();
  expect(retried.length).toBeGreaterThan(0);
  // What was carried out and not answered is met again as a duplicate.
  expect([recorded + duplicate, rejected]).toEqual([300, 0]);
  for (const rest of [0, 1, 2]) {
    const expected = Array.from({ length: 300 }, (_, index) => 300 - index).filter((count) => count % 3 === rest);
    expect(countsOf(await entriesOf('broken', `b-${rest}`))).toEqual(expected);
  }
  // A repeat has the same bytes: its ids and times are those of the first attempt.
  const bodies = proxy.requests.filter(({ path }) => path.startsWith('/recorder')).map(({ body }) => body);
  expect(new Set(bodies).size).toBe(10);
});

test('a service that asks to wait is waited for, and the application with it', async () => {
  let away = true;
  proxy.behave(() => (away ? { kind: 'answer', status: 503, headers: { 'retry-after': '1' } } : { kind: 'none' }));
  const delays: number[] = [];
  const recorder = createRecorder({ buffer: 5, batch: 2, delay: 0, onRetry: (_, delay) => void delays.push(delay) });
  for (let count = 1; count <= 5; count += 1) await recorder.record(update('waited', 'w-1', count));
  let taken = false;
  const sixth = recorder.record(update('waited', 'w-1', 6)).then(() => {
    taken = true;
  });
  await eventually(() => delays.length).toBeGreaterThan(0);
  await letOthersWork(50);
  expect(taken).toBe(false);
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(1_000);
  away = false;
  await sixth;
  await recorder.close();
  expect(countsOf(await entriesOf('waited'))).toEqual([6, 5, 4, 3, 2, 1]);
});

test('a change that can never be recorded is reported, and does not block the others', async () => {
  const rejected: { line: string; reason: string }[] = [];
  const recorder = createRecorder({ onRejected: (each) => void rejected.push(each) });
  await recorder.record(update('partly', 'p-1', 1));
  await recorder.record({ ...update('partly', 'p-1', 2), at: '2099-01-01T00:00:00Z' });
  await recorder.record(update('partly', 'p-1', 3));
  expect(await recorder.close()).toMatchObject({ read: 3, recorded: 2, rejected: 1 });
  expect(rejected).toEqual([
    { line: expect.stringContaining('"at":"2099-01-01T00:00:00Z"'), reason: expect.any(String) },
  ]);
  expect(countsOf(await entriesOf('partly'))).toEqual([3, 1]);
});

test('requests whose changes are all rejected, answered 400, are taken and counted, and the recorder continues', async () => {
  const rejected: string[] = [];
  const retried: string[] = [];
  const recorder = createRecorder({ batch: 2, delay: 0, onRejected: ({ reason }) => void rejected.push(reason), onRetry: ({ type }) => void retried.push(type) }); // biome-ignore format: one line
  const late = { at: '2099-01-01T00:00:00Z' };
  await recorder.record({ ...update('refused', 'r-1', 1), ...late });
  await recorder.record({ ...update('refused', 'r-1', 2), ...late });
  expect(await recorder.flush()).toMatchObject({ read: 2, recorded: 0, rejected: 2 });
  await recorder.record({ op: 'create', entity: 'refused', entityId: 'r-2', after: { count: 3 } });
  expect(await recorder.close()).toMatchObject({ read: 3, recorded: 1, rejected: 2 });
  expect(rejected).toEqual(Array(2).fill('"at" is more than 5 minutes in the future'));
  expect([retried, recorder.unsent()]).toEqual([[], []]);
});

test('a 400 that is no count of rejected changes ends the recorder with its error', async () => {
  proxy.behave(() => ({ kind: 'answer', status: 400, headers: {} }));
  const recorder = createRecorder({ delay: 0 });
  await recorder.record(update('refused', 'r-3', 1));
  await expect(recorder.close()).rejects.toMatchObject({ status: 400 });
  expect(recorder.unsent()).toHaveLength(1);
});

test('a request over a limit is divided; a change over it is reported as rejected, or refused with a RangeError', async () => {
  const rejected: string[] = [];
  const recorder = createRecorder({ onRejected: ({ reason }) => void rejected.push(reason) });
  const deep = JSON.parse(`${'['.repeat(10_001)}${']'.repeat(10_001)}`);
  for (let count = 1; count <= 5; count += 1) {
    await recorder.record(update('divided', 'd-1', count));
    if (count === 3) await recorder.record({ op: 'insert', entity: 'divided', entityId: 'd-2', after: deep });
  }
  expect(await recorder.close()).toMatchObject({ read: 6, recorded: 5, rejected: 1 });
  expect(rejected).toEqual([expect.stringContaining('levels')]);
  expect(proxy.requests.length).toBeGreaterThan(3);
  expect(countsOf(await entriesOf('divided'))).toEqual([5, 4, 3, 2, 1]);
  const second = createRecorder();
  const long = { op: 'insert', entity: 'long', entityId: '1', after: 'x'.repeat(16 * 1024 * 1024) } as const;
  await expect(second.record(long)).rejects.toThrow(RangeError);
  expect(await second.close()).toMatchObject({ read: 0 });
});

test('a client that may not record ends the recorder, and nothing is lost', async () => {
  const reader = await server.createClient('acme', { scope: 'changelog.changelog_read' });
  const recorder = new Annals({ baseUrl: server.baseUrl, ...reader }).recorder({ url: proxy.baseUrl, delay: 0 });
  await recorder.record({ ...update('refused', 'r-1', 1), id: 'mine' });
  const refused = await recorder.flush().catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ApiError);
  expect(refused).toMatchObject({ status: 403, type: 'insufficient_permissions' });
  await expect(recorder.record(update('refused', 'r-1', 2))).rejects.toBe(refused);
  await expect(recorder.close()).rejects.toBe(refused);
  expect(recorder.unsent().map((line) => JSON.parse(line))).toMatchObject([{ id: 'mine', entityId: 'r-1' }]);
  // Lines that were left are recorded by another recorder, under the same ids.
  const successor = createRecorder();
  for (const line of [...recorder.unsent(), ...recorder.unsent()]) await successor.record(JSON.parse(line));
  expect(await successor.close()).toMatchObject({ read: 2, recorded: 1, duplicate: 1 });
});

test('a signal aborts close, and unsent has what is left', async () => {
  proxy.behave(() => ({ kind: 'hang' }));
  const recorder = createRecorder({ delay: 0 });
  await recorder.record(update('given-up', 'g-1', 1));
  await eventually(() => proxy.requests.length).toBe(1);
  const reason = new Error('no more time');
  await expect(recorder.close({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(recorder.unsent()).toHaveLength(1);
});

test('flush ends while the service is away, and the changes are sent once it is back', async () => {
  proxy.behave(() => ({ kind: 'cut' }));
  const { one: recorder, failed: first } = impatient();
  await recorder.record(update('away', 'a-1', 1));
  await first;
  const failed = await recorder.flush().catch((error: unknown) => error);
  expect(failed).toMatchObject({ name: 'ApiError', type: 'connection_failed' });
  proxy.behave(() => ({ kind: 'hang' }));
  expect(await recorder.flush().catch((error: unknown) => error)).toBeInstanceOf(ApiError);
  expect(recorder.unsent()).toHaveLength(1);
  const second = createRecorder({ delay: 0, timeout: 100 });
  proxy.behave(() => ({ kind: 'cut' }));
  await second.record(update('away', 'a-2', 1));
  await expect(second.flush()).rejects.toBeInstanceOf(ApiError);
  proxy.behave(() => ({ kind: 'none' }));
  await eventually(() => second.unsent()).toEqual([]);
  expect(await entriesOf('away', 'a-2')).toHaveLength(1);
  expect(await second.close()).toMatchObject({ read: 1, rejected: 0 });
  proxy.behave(() => ({ kind: 'cut' }));
  const third = createRecorder({ delay: 0, timeout: 100 });
  await third.record(update('away', 'a-3', 1));
  await expect(third.close()).rejects.toBeInstanceOf(ApiError);
  expect(third.unsent()).toHaveLength(1);
});

test('flush waits for no more changes, however many requests it takes', async () => {
  const recorder = createRecorder({ delay: 2 ** 30, batch: 2 });
  for (let count = 1; count <= 5; count += 1) await recorder.record(update('hurried', 'h-1', count));
  expect(await recorder.flush()).toMatchObject({ recorded: 5 });
  await recorder.close();
});

test('in a page, the error of a failed connection names ANNALS_CORS_ORIGINS', async () => {
  Reflect.set(globalThis, 'document', new EventTarget());
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'document'));
  proxy.behave(() => ({ kind: 'cut' }));
  const { one: recorder, failed } = impatient();
  await recorder.record(update('page', 'p-1', 1));
  await failed;
  await expect(recorder.close()).rejects.toThrow('ANNALS_CORS_ORIGINS');
});

test('a program that ends by itself has sent everything', async () => {
  const source = join(import.meta.dirname, '..', '..', 'clients', 'typescript', 'src', 'index.ts');
  const program = `
    const { Annals } = await import(${JSON.stringify(source)});
    const { baseUrl, url, clientId, clientSecret } = JSON.parse(process.env.SETTINGS);
    const recorder = new Annals({ baseUrl, tenant: 'acme', clientId, clientSecret }).recorder({ url });
    for (const id of ['e-1', 'e-2', 'e-3']) await recorder.record({ op: 'insert', entity: 'exit', entityId: id, after: 1 });`;
  let requests = 0;
  proxy.behave(() => ({ kind: requests++ === 0 ? 'cut' : 'none' }));
  const { clientId, clientSecret } = client;
  const settings = { baseUrl: server.baseUrl, url: proxy.baseUrl, clientId, clientSecret };
  const env = { SETTINGS: JSON.stringify(settings) };
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { env });
  expect((await entriesOf('exit')).map((entry) => entry.entityId)).toEqual(['e-3', 'e-2', 'e-1']);
});

test('a page that is hidden sends what it has in a request that outlives it', async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: 'visible' });
  Reflect.set(globalThis, 'document', page);
  onTestFinished(() => void Reflect.deleteProperty(globalThis, 'document'));
  const sent: (boolean | undefined)[] = [];
  const noting: typeof fetch = async (input, init) => {
    if (String(input).includes('/recorder/')) sent.push(init?.keepalive);
    return await fetch(input, init);
  };
  const recorder = new Annals({ baseUrl: server.baseUrl, ...client, fetch: noting }).recorder({
    url: proxy.baseUrl,
    delay: 60_000,
  });
  await recorder.record(update('hidden', 'h-1', 1));
  page.dispatchEvent(new Event('visibilitychange'));
  page.visibilityState = 'hidden';
  page.dispatchEvent(new Event('visibilitychange'));
  await eventually(() => sent).toEqual([true]);
  await eventually(async () => await entriesOf('hidden')).toHaveLength(1);
  // The page came back: its recorder does not know what arrived, and the service does.
  expect(await recorder.close()).toMatchObject({ recorded: 0, duplicate: 1 });
  page.dispatchEvent(new Event('visibilitychange'));
  expect(sent).toEqual([true, false]);
});

test('long requests are packed', async () => {
  const recorder = createRecorder();
  for (let count = 1; count <= 50; count += 1) await recorder.record(update('packed', 'p-1', count));
  await recorder.close();
  const [request] = proxy.requests;
  expect(request?.headers['content-encoding']).toBe('gzip');
  expect(
    gunzipSync(Buffer.from(request?.body ?? '', 'latin1'))
      .toString()
      .split('\n'),
  ).toHaveLength(51);
});
