import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import type { Tracer } from '../../../src/core/trace.ts';
import { readSource } from '../../../src/postgres/source/source.ts';
import { openRejected } from '../../../src/recording/batches/rejected-changes.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import type { SourceChange } from '../../../src/recording/mapping/record-mapped.ts';
import { RecorderClient, recordOverHttp } from '../../../src/sources/outbox/record-over-http.ts';
import { relay } from '../../../src/sources/outbox/relay.ts';
import { type Seen, startCollector, startTracing } from '../../support/server/collector.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer } from '../../support/server/server.ts';
import { tenant, useHistory } from '../history.ts';
import { type Application, createApplication } from './relayed.ts';

const openHistory = useHistory();

const scope = 'recorder.change_record recorder.actor_set changelog.changelog_manage';
const tables = { 'public.orders': { entity: 'order', mask: ['card', 'payload.cards.number'] } };
const orders = 'create table orders (id text primary key, card text, payload jsonb)';
const collector = await startCollector();
const server = await startTestServer({ environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
const recorder = await startTestRecorder(server);

afterAll(async () => {
  await recorder.close();
  await server.close();
  collector.server.closeAllConnections();
  collector.server.close();
});

type Fault = 'busy' | 'no answer' | undefined;

/** A recorder behind which requests with changes meet faults, in this order. */
async function faultyRecorder(faults: Fault[]): Promise<{ url: URL; requests: () => number }> {
  let requests = 0;
  const proxy = createServer((incoming, outgoing) => {
    const isChanges = incoming.url?.includes('/changes') ?? false;
    const fault = isChanges ? faults[requests] : undefined;
    if (isChanges) requests += 1;
    if (fault === 'busy') {
      incoming.resume();
      outgoing.writeHead(429, { 'retry-after': '1' }).end('{}');
      return;
    }
    const { port } = new URL(recorder.baseUrl);
    const { method = 'GET', url = '/', headers } = incoming;
    const forwarded = request({ port, host: '127.0.0.1', method, path: url, headers }, (answer) => {
      if (fault === 'no answer') outgoing.destroy();
      else answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers));
    });
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const { port } = proxy.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}`), requests: () => requests };
}

function startRelay(
  { url, mapping }: Application,
  to: URL,
  client: { clientId: string; clientSecret: string },
  tracer?: Tracer,
) {
  const controller = new AbortController();
  const messages: string[] = [];
  const log = {
    info: () => {},
    warn: (fields: object, message: string) => void messages.push(`${message} ${JSON.stringify(fields)}`),
  };
  const ended = relay({
    source: readSource(url),
    mapping: readMapping(JSON.stringify(mapping)),
    record: recordOverHttp({ target: { url: to, tenant, ...client }, strict: false, log }),
    log,
    tracer,
    signal: controller.signal,
  });
  ended.catch(() => {});
  onTestFinished(async () => {
    controller.abort();
    await ended.catch(() => {});
  });
  return { ended, messages };
}

test('a busy recorder and lost responses: each change is one entry, and masked values that differ are recorded as masks', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { pool } = application;
  const { url, requests } = await faultyRecorder(['busy', 'no answer', undefined]);
  const insert = 'insert into orders values ($1, $2, $3)';
  await pool.query(insert, ['1', 'canary-1', { cards: [{ number: 'canary-2', kind: 'a' }, { number: 'canary-3' }] }]);
  await pool.query('update orders set card = $1, payload = $2', [
    'canary-4',
    { cards: [{ number: 'canary-2', kind: 'b' }, { number: 'canary-5' }] },
  ]);
  await pool.query(`update orders set id = '2'`);
  await pool.query(`select annals.record('note', '7', null, '{"a": 1}')`);
  await pool.query(`update orders set id = repeat('x', 1001)`);
  const began = performance.now();
  const { messages } = startRelay(application, url, await server.createClient(tenant, { scope, name: 'Relay' }));
  await eventually(async () => (await pool.query('select 1 from annals.outbox')).rowCount).toBe(0);
  expect(performance.now() - began).toBeGreaterThan(1_000);
  expect(requests()).toBeGreaterThan(2);

  const token = await server.token(tenant, { scope: 'changelog.changelog_read changelog.changelog_manage' });
  const answer = await server.call(`/changelog/${tenant}/changelogs?context=true`, { token });
  const { items } = (await answer.json()) as { items: Record<string, unknown>[] };
  const shown = items.toReversed().map(({ type, entityId, actor, paths }) => ({ type, entityId, actor, paths }));
  expect(JSON.stringify(items)).not.toContain('canary');
  expect(shown.filter(({ entityId }) => entityId === '1')).toMatchObject([
    { type: 'create', actor: 'unknown' },
    {
      type: 'update',
      paths: {
        card: { before: '********', after: '********' },
        'payload.cards.0.kind': { before: 'a', after: 'b' },
        'payload.cards.1.number': { before: '********', after: '********' },
      },
    },
    { type: 'delete' },
  ]);
  expect(Object.keys(shown.filter(({ entityId }) => entityId === '1')[1]?.paths ?? {})).toHaveLength(3);
  expect(shown.filter(({ entityId }) => entityId === '2').map(({ type }) => type)).toEqual(['create', 'delete']);
  expect(shown.filter(({ entityId }) => entityId === '7')).toHaveLength(1);
  // The row with the long id: document 2 is gone, and the new one is kept aside.
  expect(items).toHaveLength(6);
  expect(messages.filter((message) => message.includes('keeps it aside')).join()).toContain(
    'has more than 1000 characters',
  );
});

test('who made a change, for whom, and its correlation id are sent with it', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const who = { actor: 'Jane', actorId: 'u-1', onBehalfOf: { id: 'c-1' } };
  await application.pool.query(
    `begin; select set_config('annals.who', '${JSON.stringify(who)}', true);
     insert into orders values ('who-1'); insert into orders values ('who-2'); commit; insert into orders values ('who-3')`,
  );
  const { url, requests } = await faultyRecorder(['no answer']);
  const { messages } = startRelay(application, url, await server.createClient(tenant, { scope, name: 'Relay' }));
  await eventually(async () => (await application.pool.query('select 1 from annals.outbox')).rowCount).toBe(0);
  expect(requests()).toBeGreaterThan(1);
  const token = await server.token(tenant, { scope: 'changelog.changelog_read' });
  const answer = await server.call(`/changelog/${tenant}/changelogs?q=entity:order`, {
    token,
  });
  const { items } = (await answer.json()) as { items: Record<string, unknown>[] };
  const [first, second, third] = ['who-1', 'who-2', 'who-3'].map((id) => items.find(({ entityId }) => entityId === id));
  expect(first).toMatchObject({ ...who, correlationId: expect.stringContaining('-8') });
  expect(second).toMatchObject({ ...who, correlationId: first?.correlationId });
  expect(third).toMatchObject({ actor: 'unknown' });
  expect(third).not.toHaveProperty('actorId');
  expect(third).not.toHaveProperty('correlationId');
  expect(messages.join()).not.toContain('rejected');
});

test('a correlation id that the relay derived is no content of a change, unlike one that the change gave', async () => {
  const client = await server.createClient(tenant, { scope, name: 'Relay' });
  const warnings: object[] = [];
  const log = { info: () => {}, warn: (fields: object) => void warnings.push(fields) };
  const target = { url: new URL(recorder.baseUrl), ...client, tenant };
  const record = recordOverHttp({ target, strict: false, log });
  // More lines than the header has bits in a byte. The tenth is derived, the eleventh given.
  const at = server.context.clock.now() - 60_000;
  const changes = (correlationId: string, title = 'a') =>
    Array.from({ length: 12 }, (_, index): SourceChange => {
      const change = {
        identity: Buffer.alloc(16, 100 + index),
        at,
        type: 'create' as const,
        ...{ entity: 'correlated', entityId: String(index), actor: 'a', related: [], paths: '{"title":{"after":"a"}}' },
        ...([9, 10].includes(index) && { correlationId }),
        ...(index === 9 && { derived: { correlationId: true as const } }),
      };
      const mapped = { kind: 'change' as const, tenant, hasActor: true, change };
      return { position: `outbox ${index}`, mapped, content: () => JSON.stringify({ after: { title } }) };
    });
  await record(changes('first'));
  expect(warnings).toEqual([]);
  await record(changes('second'));
  expect(warnings).toMatchObject([{ place: 'outbox 10' }]);
  const token = await server.token(tenant, { scope: 'changelog.changelog_read' });
  const path = `/changelog/${tenant}/changelogs?q=entity:correlated correlationId:(first, second)&size=100`;
  const { items } = (await (await server.call(path, { token })).json()) as { items: Record<string, unknown>[] };
  expect(items.map(({ entityId, correlationId }) => [entityId, correlationId]).toSorted()).toEqual([
    ['10', 'first'],
    ['9', 'first'],
  ]);
  // Kept aside, it is no content either.
  await server.database.pool.query('delete from change_rejected where tenant = $1', [tenant]);
  await record(changes('third', 'b').slice(9, 10));
  const { rows } = await server.database.pool.query<{ id: string; sealed: Buffer }>(
    'select id, sealed from change_rejected where tenant = $1',
    [tenant],
  );
  const kept = rows.map(({ id, sealed }) => openRejected(server.context.sealer, tenant, id, sealed));
  expect(kept).toMatchObject([{ correlationId: 'third' }]);
  expect(JSON.parse(kept[0]?.line ?? '')).toMatchObject({ entityId: '9', after: { title: 'b' } });
  expect(kept[0]?.line).not.toContain('third');
});

test('a batch whose changes are all rejected, answered 400, is taken: the relay keeps none of it and continues', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { pool } = application;
  const { url, requests } = await faultyRecorder([]);
  await pool.query(`select annals.record('annals-refused', '1', null, '{"a": 1}')`);
  const { ended, messages } = startRelay(application, url, await server.createClient(tenant, { scope, name: 'Relay' }));
  await eventually(async () => (await pool.query('select 1 from annals.outbox')).rowCount).toBe(0);
  expect(requests()).toBe(1);
  expect(messages.join()).toContain('one that this service records itself');
  await pool.query(`select annals.record('note', '8', null, '{"a": 1}')`);
  await eventually(async () => (await pool.query('select 1 from annals.outbox')).rowCount).toBe(0);
  expect(await Promise.race([ended.then(() => 'ended'), 'runs'])).toBe('runs');
});

test('one trace goes from the batch of the relay, over its request, to each statement by which the recorder records', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  const { spans, tracer } = await startTracing();
  await application.pool.query(`insert into orders values ('traced')`);
  startRelay(application, new URL(recorder.baseUrl), await server.createClient(tenant, { scope }), tracer);
  await eventually(() => spans.find(({ name }) => name === 'relay')).toBeDefined();
  const [batch, send] = ['relay', 'record'].map((name) => spans.find((span) => span.name === name));
  const inTrace = () => collector.spans.filter(({ traceId }) => traceId === batch?.traceId);
  const requestSpan = () => inTrace().find(({ name }) => name === 'POST /recorder/:tenant/changes');
  await eventually(requestSpan).toMatchObject({
    parentSpanId: send?.spanId,
    attributes: { 'http.response.status_code': 200 },
  });
  expect(send?.parentSpanId).toBe(batch?.spanId);
  const statements = inTrace().filter(({ attributes }) => attributes['db.system.name'] === 'postgresql');
  expect(statements.map(({ attributes }) => attributes['db.query.text']).join()).toContain('record_entries');
  const byId = new Map(inTrace().map((span) => [span.spanId, span]));
  const rootOf = (span: Seen): Seen => {
    const parent = byId.get(span.parentSpanId ?? '');
    return parent === undefined ? span : rootOf(parent);
  };
  const tokenRequest = inTrace().find(({ name }) => name === 'POST /oauth/token');
  for (const statement of statements) expect([requestSpan(), tokenRequest]).toContain(rootOf(statement));
  // The trace is that of the relay: the change was alone in its transaction.
  const token = await server.token(tenant, { scope });
  const answer = await server.call(`/changelog/${tenant}/changelogs?q=entity:order entityId:traced`, { token });
  const { items } = (await answer.json()) as { items: object[] };
  expect(items).toMatchObject([{ entityId: 'traced', type: 'create' }]);
  expect(items[0]).not.toHaveProperty('correlationId');
});

test('a client that lacks a scope, or that the recorder does not know, ends the relay', async () => {
  const application = await createApplication(openHistory(), orders, tables);
  await application.pool.query(`insert into orders values ('1')`);
  const client = await server.createClient(tenant, { scope: 'recorder.change_record' });
  const url = new URL(recorder.baseUrl);
  await expect(startRelay(application, url, client).ended).rejects.toThrow('lacks recorder.actor_set');
  const unknown = { ...client, clientSecret: 'wrong' };
  await expect(startRelay(application, url, unknown).ended).rejects.toThrow('does not know the client');
  expect((await application.pool.query('select 1 from annals.outbox')).rowCount).toBe(1);
});

test('what is too large for one request is divided, and a change that is too large alone is kept as a place', async () => {
  const taken: string[][] = [];
  const small = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    if (incoming.url === '/below/oauth/token') {
      outgoing.end(JSON.stringify({ scope: 'recorder.change_record recorder.actor_set' }));
      return;
    }
    const lines = gunzipSync(body).toString().split('\n');
    const isTooLarge = lines.length > 2 || lines.some((line) => line.length > 500);
    if (!isTooLarge) taken.push(lines.map((line) => JSON.parse(line).entityId ?? line));
    outgoing.writeHead(isTooLarge ? 413 : 200).end(JSON.stringify({ rejected: [] }));
  });
  await new Promise<void>((resolve) => void small.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void small.close());
  const { port } = small.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}/below`);
  const log = { info: () => {}, warn: () => {} };
  const recording = (strict: boolean) =>
    recordOverHttp({ target: { url, tenant, clientId: 'c', clientSecret: 's' }, strict, log });
  const placed = (entityId: string, title: string): SourceChange => ({
    position: `outbox ${entityId}`,
    mapped: {
      kind: 'change',
      tenant,
      hasActor: true,
      change: {
        identity: Buffer.alloc(16),
        at: 1,
        type: 'create',
        entity: 'e',
        entityId,
        actor: 'a',
        related: [],
        paths: '{}',
      },
    },
    content: () => JSON.stringify({ after: { title } }),
  });
  const changes = [
    placed('1', 'a'),
    placed('2', 'x'.repeat(500)),
    placed('3', 'a'),
    placed('4', 'a'),
    placed('5', 'a'),
  ];
  await recording(false)(changes);
  expect(taken).toEqual([['1'], ['{"place":"outbox 2"}'], ['3'], ['4', '5']]);
  await expect(recording(true)(changes)).rejects.toThrow('the change at outbox 2 is larger than the recorder takes');
});

test.each([
  ['0', 0],
  ['300', 300_000],
  ['301', 300_000],
  ['soon', undefined],
])('a busy recorder with Retry-After %s is retried after 5 minutes at the latest', async (header, retryAfter) => {
  const busy = createServer((_request, response) => response.writeHead(503, { 'retry-after': header }).end());
  await new Promise<void>((resolve) => void busy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void busy.close());
  const { port } = busy.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}`);
  const client = new RecorderClient({ url, tenant, clientId: 'relay', clientSecret: 'secret' });
  await expect(client.send(['{}'], { strict: false })).rejects.toMatchObject({
    name: 'RecorderBusyError',
    retryAfter,
  });
});
