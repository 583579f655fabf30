import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { Sampler } from '../../src/core/config/trace-settings.ts';
import { createLogger } from '../../src/http/logger.ts';
import { createTracer } from '../../src/metrics/open-telemetry.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startCollector } from '../support/server/collector.ts';
import { setProviderToken } from '../support/server/completions.ts';
import { eventually, letOthersWork } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';

const shared = 'sk-shared-token-of-the-service';
const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';

const collector = await startCollector();
closeAfterAll(collector.server);
const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(
  await startTestServer({
    environment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20key',
      OTEL_SERVICE_NAME: 'shop-annals',
      OPENAI_BASE_URL: `${vendor.baseUrl}/v1`,
      ANNALS_SHARED_PROVIDER_TOKEN: shared,
    },
  }),
);

const ofTrace = (id: string) => collector.spans.filter((span) => span.traceId === id);
const traceparent = (id: string, flags = '01') => `00-${id}-${parentId}-${flags}`;

test('a request continues with the trace of its client; its statements and its call of a provider are its children', async () => {
  const token = await server.token('acme');
  const response = await server.call('/ai-service/acme/completions', {
    token,
    headers: { traceparent: traceparent(traceId), tracestate: 'other=1' },
    json: { id: 'r-1', messages: [{ role: 'user', content: 'a text that no span may have' }] },
  });
  expect(response.status).toBe(200);
  await eventually(() => ofTrace(traceId).map(({ kind }) => kind)).toContain(2);
  const [root, ...others] = ofTrace(traceId).sort(
    (one, other) => other.kind - other.kind || Number(other.kind === 2) - Number(one.kind === 2),
  );
  expect(root).toMatchObject({
    parentSpanId: parentId,
    service: 'shop-annals',
    attributes: { 'http.request.method': 'POST', 'http.response.status_code': 200 },
    hasFailed: false,
  });
  expect(root?.name).toBe(`POST ${root?.attributes['http.route']}`);
  const calls = others.filter(({ name }) => name.startsWith('chat '));
  expect(calls).toMatchObject([
    { parentSpanId: root?.spanId, attributes: { 'gen_ai.provider.name': 'openai', 'annals.outcome': 'answered' } },
  ]);
  const statements = others.filter(({ attributes }) => attributes['db.system.name'] === 'postgresql');
  expect(statements.length).toBeGreaterThan(0);
  for (const { parentSpanId } of statements)
    expect(ofTrace(traceId).map(({ spanId }) => spanId)).toContain(parentSpanId);
  // The provider gets the span of the call as its parent.
  expect(vendor.requests.at(-1)?.headers).toMatchObject({
    traceparent: `00-${traceId}-${calls[0]?.spanId}-01`,
    tracestate: 'other=1',
  });
  expect(collector.headers).toContain('a key');
});

test('a call for embeddings is named so', async () => {
  const id = traceId.replace('0af7', '7777');
  const token = await server.token('embedding');
  await setProviderToken(server, 'embedding', 'sk-own');
  const response = await server.call('/openai/embedding/v1/embeddings', {
    token,
    headers: { traceparent: traceparent(id) },
    json: { model: 'openai/text-embedding-3-small', input: 'Hello' },
  });
  expect(response.status).toBe(200);
  await eventually(() => ofTrace(id).map(({ name }) => name)).toContain('embeddings text-embedding-3-small');
});

test('a job is a trace of its own, with a link to the request that queued it', async () => {
  const id = traceId.replace('0af7', '1111');
  const token = await server.token('acme');
  const response = await server.call('/ai-service/acme/jobs', {
    token,
    headers: { traceparent: traceparent(id) },
    json: { type: 'EXPORT', q: 'actor:"somebody whom no span may name"', format: 'NDJSON' },
  });
  expect(response.status).toBe(201);
  await eventually(() => collector.spans.filter(({ name }) => name === 'job EXPORT').length).toBe(1);
  const job = collector.spans.find(({ name }) => name === 'job EXPORT');
  expect(job).toMatchObject({ links: [{ traceId: id }], hasFailed: false });
  expect(job?.traceId).not.toBe(id);
  await eventually(() => ofTrace(job?.traceId ?? '').filter(({ kind }) => kind === 3).length).toBeGreaterThan(1);
});

test('no span has a token, a value of a statement, a query or a text of a tenant', async () => {
  const token = await server.token('acme');
  const secretQuery = encodeURIComponent('actor:"hidden words of a query"');
  await server.call(`/changelog/acme/changelogs?q=${secretQuery}`, {
    token,
    headers: { traceparent: traceparent('2'.repeat(32)) },
  });
  await server.call('/nothing/hidden-path', { headers: { traceparent: traceparent('3'.repeat(32)) } });
  await eventually(() => ofTrace('2'.repeat(32)).length > 1 && ofTrace('3'.repeat(32)).length).toBe(1);
  expect(ofTrace('3'.repeat(32))[0]?.name).toBe('GET');
  const all = collector.bodies.join('\n');
  for (const secret of [token, shared, 'hidden', 'no span may', 'Bearer', 'postgres://'])
    expect(all.includes(secret), secret).toBe(false);
});

test('what is not sampled is handed on and not exported; a wrong traceparent is ignored', async () => {
  const token = await server.token('acme');
  const call = (header: string) =>
    server.call('/changelog/acme/changelogs', {
      token,
      headers: { traceparent: header, 'x-request-id': `t-${header}`.slice(0, 128) },
    });
  const wrong = [
    `00-${'0'.repeat(32)}-${parentId}-01`,
    `00-${'4'.repeat(32)}-${'0'.repeat(16)}-01`,
    `ff-${'4'.repeat(32)}-${parentId}-01`,
    `00-${'4'.repeat(32)}-${parentId}-01-more`,
    `00-${'4'.repeat(31)}-${parentId}-01`,
    `00-${'A'.repeat(32)}-${parentId}-01`,
  ];
  const before = collector.spans.length;
  expect((await call(traceparent('5'.repeat(32), '00'))).status).toBe(200);
  for (const header of wrong) expect((await call(header)).status).toBe(200);
  // A later version may have more.
  expect((await call(`cc-${'6'.repeat(32)}-${parentId}-01-more`)).status).toBe(200);
  await eventually(() => ofTrace('6'.repeat(32)).length).toBeGreaterThan(0);
  const later = collector.spans.slice(before).filter(({ kind }) => kind === 2);
  expect(ofTrace('5'.repeat(32))).toEqual([]);
  expect(later.filter(({ parentSpanId }) => parentSpanId === parentId).map((span) => span.traceId)).toEqual([
    '6'.repeat(32),
  ]);
  expect(later.filter(({ parentSpanId }) => parentSpanId === undefined).length).toBeGreaterThanOrEqual(wrong.length);
});

test('log lines have the id of the trace once, also without export', async () => {
  const plain = await startTestServer({
    database: server.database,
    environment: { OPENAI_BASE_URL: `${vendor.baseUrl}/v1`, ANNALS_SHARED_PROVIDER_TOKEN: shared },
    extend: (app, context) => {
      app.get('/rooms/:tenant', { config: { scopes: ['ai.agent_read'] } }, async () => {
        context.logger.info('of a module');
        return 'fine';
      });
    },
  });
  const token = await plain.token('acme');
  plain.logLines.length = 0;
  await plain.call('/rooms/acme', { token, headers: { traceparent: traceparent(traceId) } });
  await eventually(() => plain.logLines.filter((line) => line.includes('"request"')).length).toBe(1);
  for (const line of plain.logLines.filter((one) => /of a module|"request"/.test(one))) {
    expect(line.split(`"trace_id":"${traceId}"`)).toHaveLength(2);
  }
  plain.logLines.length = 0;
  await plain.call('/rooms/acme', { token });
  await eventually(() => plain.logLines.filter((line) => line.includes('"request"')).length).toBe(1);
  expect(plain.logLines.join('')).not.toContain('trace_id');
  // It hands on what it was given.
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] });
  const headers = { 'content-type': 'application/json', traceparent: traceparent(traceId, '00') };
  await plain.call('/ai-service/acme/completions', { method: 'POST', token, headers, body });
  expect(vendor.requests.at(-1)?.headers.traceparent).toBe(traceparent(traceId, '00'));
  await plain.close();
});

test('a collector that is away or never answers costs no request anything, and what waits is bounded', async () => {
  const silent = createServer(() => {});
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const lines: string[] = [];
  for (const url of [`http://127.0.0.1:${port}/v1/traces`, 'http://127.0.0.1:9/v1/traces']) {
    const tracer = createTracer({
      settings: { url, headers: { 'x-key': 'secret' }, sampler: 'always_on', ratio: 1, attributes: {} },
      version: '1',
      logger: createLogger('warn', { write: (line) => void lines.push(line) }),
      exportEvery: 10,
      maxExport: 100,
    });
    const before = process.memoryUsage().heapUsed;
    // Each would hold 3 KB where all were kept: 150 MB.
    for (let count = 0; count < 50_000; count++) {
      tracer.begin('GET', { kind: 'server', attributes: { text: `${count} ${'x'.repeat(2_000)}` } }).end();
    }
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(110 * 1024 * 1024);
    await tracer.close();
  }
  silent.closeAllConnections();
  silent.close();
  expect(lines.length).toBeGreaterThanOrEqual(1);
  for (const line of lines) expect(line).not.toMatch(/secret|127\.0\.0\.1/);
});

test("what fails by our fault or a provider's is marked as failed, and a mistake of the client is not", async () => {
  const token = await server.token('acme');
  const complete = async (id: string, body: object) => {
    const headers = { 'content-type': 'application/json', traceparent: traceparent(id) };
    const init = { method: 'POST', token, headers, body: JSON.stringify(body) };
    return (await server.call('/ai-service/acme/completions', init)).status;
  };
  const failed = (id: string) =>
    ofTrace(id)
      .flatMap((span) => (span.hasFailed ? [span.name] : []))
      .sort();
  vendor.behave({ kind: 'status', status: 503 });
  const [ofVendor, ofClient] = ['7'.repeat(32), '8'.repeat(32)];
  expect(await complete(ofVendor, { messages: [{ role: 'user', content: 'Hello' }] })).toBe(502);
  expect(await complete(ofClient, { messages: [] })).toBe(400);
  await eventually(() => [ofVendor, ofClient].map((id) => ofTrace(id).some(({ kind }) => kind === 2))).toEqual([
    true,
    true,
  ]);
  expect(failed(ofVendor)).toEqual(['POST /ai-service/:tenant/completions', 'chat gpt-5.4-mini']);
  expect(failed(ofClient)).toEqual([]);
  vendor.behave({ kind: 'answer' });
});

test.each([
  // A trace of our own, one that the caller samples, and one that it does not.
  ['always_on', 1, [true, true, true]],
  ['always_off', 1, [false, false, false]],
  ['traceidratio', 1, [true, true, true]],
  ['traceidratio', 0, [false, false, false]],
  ['parentbased_always_on', 1, [true, true, false]],
  ['parentbased_always_off', 1, [false, true, false]],
  ['parentbased_traceidratio', 0, [false, true, false]],
] as const)('%s with the ratio %d samples %j', async (sampler, ratio, sampled) => {
  const tracer = tracerTo(collector.url, { sampler, ratio });
  const parents = [undefined, true, false].map((isSampled) =>
    isSampled === undefined ? undefined : { traceId, spanId: parentId, isSampled, state: undefined },
  );
  const begun = parents.map((parent) => tracer.begin('GET', { kind: 'server', parent }));
  expect(begun.map(({ context }) => context.isSampled)).toEqual(sampled);
  // What is not sampled keeps the trace of its caller.
  expect(begun.slice(1).map(({ context }) => context.traceId)).toEqual([traceId, traceId]);
  await tracer.close();
});

test('what waits is exported when the tracer closes, and a long attribute is cut', async () => {
  const before = collector.spans.length;
  const tracer = tracerTo(collector.url, { exportEvery: 600_000 });
  const span = tracer.begin('first name', { kind: 'internal', attributes: { text: 'x'.repeat(5_000) } });
  span.end({ name: 'last name', attributes: { more: 1 } });
  expect(collector.spans).toHaveLength(before);
  await tracer.close();
  const [exported, ...others] = collector.spans.slice(before);
  expect(others).toEqual([]);
  expect(exported).toMatchObject({ name: 'last name', attributes: { text: 'x'.repeat(1_000), more: 1 } });
});

test('exports that fail are told once a minute', async () => {
  const lines: string[] = [];
  const tracer = tracerTo('http://127.0.0.1:9', { exportEvery: 1, lines });
  for (let exports = 0; exports < 3; exports += 1) {
    tracer.begin('GET', { kind: 'server' }).end();
    await letOthersWork(100);
  }
  await tracer.close();
  expect(lines).toHaveLength(1);
});

interface TracerOptions {
  sampler?: Sampler;
  ratio?: number;
  exportEvery?: number;
  lines?: string[];
}

function tracerTo(url: string, { sampler = 'always_on', ratio = 1, exportEvery = 10, lines = [] }: TracerOptions) {
  return createTracer({
    settings: { url: `${url}/v1/traces`, headers: {}, sampler, ratio, attributes: {} },
    version: '1',
    logger: createLogger('warn', { write: (line) => void lines.push(line) }),
    exportEvery,
    maxExport: 1_000,
  });
}
