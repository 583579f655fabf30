import { expect, onTestFinished, test } from 'vitest';
import { Annals, ApiError } from '../../clients/typescript/src/index.ts';
import { entity } from '../../clients/typescript/src/query/index.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { startTestServer } from '../support/server/server.ts';

const now = Date.UTC(2026, 8, 15);
/** How the requests go out; a test breaks them. */
let send: typeof fetch = fetch;

const server = closeAfterAll(await startTestServer());
const client = await server.createClient('acme');
const annals = new Annals({ baseUrl: server.baseUrl, ...client, fetch: (input, init) => send(input, init) });

async function record(at: number, more: object = {}): Promise<void> {
  await createRecorder(server.context.db, 'acme', () => now)([changeOf({ at: now + at, ...more })]);
}

test('changes come as they are recorded, with their cursors, by a query', async () => {
  await record(1, { entity: 'product' });
  await record(2);
  const cursors: string[] = [];
  const changes = annals.history.tail({
    q: entity('product'),
    after: 'start',
    onCursor: (cursor) => cursors.push(cursor),
  });
  const first = (await changes.next()).value;
  expect(first).toMatchObject({ entity: 'product', position: 1 });
  await record(3, { entity: 'product' });
  const second = (await changes.next()).value;
  expect(second).toMatchObject({ position: 3 });
  expect(cursors).toContain(first?.cursor);
  await changes.return();
  const rest = annals.history.tail({ after: first?.cursor });
  expect((await rest.next()).value?.position).toBe(2);
  expect((await rest.next()).value?.ref).toBe(second?.ref);
  await rest.return();
});

test('exact changes keep every digit', async () => {
  const paths = '{"price":{"after":1.10}}';
  await record(10, { entity: 'exact', paths });
  const changes = annals.exact.history.tail({ q: 'entity:exact', after: 'start' });
  const change = (await changes.next()).value;
  expect(String(change?.paths.get('price')?.after)).toBe('1.10');
  expect(change?.cursor).toBeTypeOf('string');
  await changes.return();
});

test('it continues after faults of every kind, and misses nothing', async () => {
  onTestFinished(() => {
    send = fetch;
  });
  const after = server.context.feed.cursorOf('acme', await server.context.feed.positionOf('acme', 'now'));
  let connections = 0;
  // Each connection breaks after its first change; after that the service is away once, or refuses.
  send = async (input, init) => {
    if (!String(input).includes('/feed')) return await fetch(input, init);
    connections += 1;
    if (connections % 4 === 2) throw new TypeError('fetch failed');
    if (connections % 4 === 0) return new Response('{"type":"service_unavailable","message":"away"}', { status: 503 });
    const response = await fetch(input, init);
    const body = response.body?.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          controller.enqueue(chunk);
          if (Buffer.from(chunk).includes('event: change')) setImmediate(() => controller.error(new TypeError('cut')));
        },
      }),
    );
    return new Response(body ?? null, response);
  };
  const changes = annals.history.tail({ q: 'entity:broken', after });
  const seen = new Set<string>();
  for (let number = 0; number < 5; number += 1) {
    await record(100 + number, { entity: 'broken', entityId: `${number}` });
    while (seen.size <= number) {
      const { value } = await changes.next();
      seen.add(value?.entityId ?? '');
    }
  }
  expect([...seen]).toEqual(['0', '1', '2', '3', '4']);
  expect(connections).toBeGreaterThan(5);
  await changes.return();
});

test('what the service refuses for good is an error, and so is a service that was never there', async () => {
  await expect(annals.history.tail({ q: 'what:ever' }).next()).rejects.toMatchObject({ status: 400 });
  const unreachable = new Annals({ baseUrl: 'http://127.0.0.1:1', tenant: 'acme', token: () => 'x', maxRetries: 0 });
  await expect(unreachable.history.tail().next()).rejects.toBeInstanceOf(ApiError);
});

test('a restored database is reported, and read again from its oldest change', async () => {
  await record(500, { entity: 'restored' });
  const resets: string[] = [];
  const changes = annals.history.tail({
    q: 'entity:restored',
    after: 'start',
    onReset: (oldest) => resets.push(oldest),
  });
  const first = (await changes.next()).value;
  await server.database.pool.query(
    `update change_position set fingerprints = (select array_agg(one # 1) from unnest(fingerprints) one) where tenant = 'acme'`,
  );
  await record(501, { entity: 'restored' });
  expect((await changes.next()).value?.ref).toBe(first?.ref);
  expect((await changes.next()).value?.at).toBe(new Date(now + 501).toISOString());
  expect(resets).toHaveLength(1);
  await changes.return();
});
