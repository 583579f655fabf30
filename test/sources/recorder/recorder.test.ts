import { randomBytes } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { revokeClient } from '../../../src/access/oauth/clients.ts';
import { measureJson } from '../../../src/core/json/measure.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { takeDatabaseAway } from '../../support/server/database-away.ts';
import { type PostOptions, startTestRecorder } from '../../support/server/recorder.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const scope = 'recorder.change_record recorder.actor_set changelog.changelog_manage';
const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server));
const token = await server.token(tenant, { scope, name: 'Shop' });
const withoutActor = await server.token(tenant, { scope: 'recorder.change_record', name: 'Plain shop' });

const post = async (body: string | Uint8Array<ArrayBuffer>, options: PostOptions = {}) =>
  await recorder.post(tenant, body, { token, ...options });

function change(members: object = {}): Record<string, unknown> {
  const id = randomBytes(8).toString('hex');
  return { op: 'insert', entity: 'order', entityId: id, id, at: new Date().toISOString(), after: { a: 1 }, ...members };
}

const lines = (...changes: object[]) => changes.map((one) => `${JSON.stringify(one)}\n`).join('');

async function itemOf(entityId: unknown): Promise<Record<string, unknown> | undefined> {
  const q = encodeURIComponent(`entity:order entityId:${entityId}`);
  const answer = await server.call(`/changelog/${tenant}/changelogs?context=true&q=${q}`, { token });
  return ((await answer.json()) as { items: Record<string, unknown>[] }).items[0];
}

const counts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: [] };

describe('a request records', () => {
  test('lines, with counts of their outcomes', async () => {
    const original = change({ actor: 'Jane Doe', context: { ip: '::1' } });
    const same = change({ op: 'update', before: { a: 1.1 }, after: { a: 1.1 } });
    const answer = await post(lines(original, original, same, { ...change(), id: undefined }));
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      ...counts,
      read: 4,
      recorded: 1,
      unchanged: 1,
      duplicate: 1,
      rejected: [{ index: 3, reason: '"id" is missing' }],
    });
    expect(await itemOf(original.entityId)).toMatchObject({
      actor: 'Jane Doe',
      context: { ip: '::1' },
      recordedBy: { way: 'recorder', by: 'Shop' },
    });
  });

  test('one JSON object, and an array of them', async () => {
    const type = 'application/json';
    const [one, two, three] = [change(), change(), change()];
    expect(await (await post(JSON.stringify(one, null, 2), { type })).json()).toEqual({
      ...counts,
      read: 1,
      recorded: 1,
    });
    const array = await post(JSON.stringify([two, 7, three]), { type: 'application/json; charset=utf-8' });
    expect(await array.json()).toEqual({
      ...counts,
      read: 3,
      recorded: 2,
      rejected: [{ index: 1, reason: 'is no JSON object' }],
    });
    expect(await itemOf(three.entityId)).toMatchObject({ actor: 'Shop' });
    expect(await (await post('[]', { type })).json()).toEqual(counts);
  });

  test.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const)('a body that is packed with %s', async (encoding, pack) => {
    const body = pack(lines(change(), change()));
    const answer = await post(body, { headers: { 'content-encoding': encoding } });
    expect(await answer.json()).toEqual({ ...counts, read: 2, recorded: 2 });
  });

  test('a repeat as duplicates', async () => {
    const body = lines(...Array.from({ length: 50 }, () => change()));
    await post(body);
    expect(await (await post(body)).json()).toEqual({ ...counts, read: 50, duplicate: 50 });
  });

  test('a create under either of its words: a repeat with the other one is a duplicate', async () => {
    const create = change({ op: 'create' });
    expect(await (await post(lines(create))).json()).toEqual({ ...counts, read: 1, recorded: 1 });
    expect(await (await post(lines({ ...create, op: 'insert' }))).json()).toEqual({ ...counts, read: 1, duplicate: 1 });
    expect(await itemOf(create.entityId)).toMatchObject({ type: 'create' });
  });

  test.each(['application/x-ndjson', 'application/ndjson', 'application/jsonl; charset=utf-8', 'Application/JSONL'])(
    'lines sent as %s',
    async (type) => {
      const answer = await post(lines(change(), change()), { type });
      expect(await answer.json()).toEqual({ ...counts, read: 2, recorded: 2 });
    },
  );

  test.each([
    ['NUL', { 'a\0b': 1 }, String.raw`"a\u0000b" is not a member of a change`],
    ['half of a surrogate pair', { '\ud83d': 1 }, String.raw`"\ud83d" is not a member of a change`],
    ['a pair that the reason cuts', { [`${'x'.repeat(199)}😀`]: 1 }, /^"x{199}\\ud83d" is not a member of a change$/],
    [
      'NUL in a related item',
      { related: [{ entity: 'a', entityId: 'b', '\0': 1 }] },
      String.raw`"related.0.\u0000" is not a member of a related item`,
    ],
  ])(
    'the others where the name of a member has %s, and keeps that change with its place',
    async (_what, more, expectedReason) => {
      const reason = typeof expectedReason === 'string' ? expectedReason : expect.stringMatching(expectedReason);
      const bad = change(more);
      const answer = await post(lines(change(), bad, change()));
      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual({ ...counts, read: 3, recorded: 2, rejected: [{ index: 1, reason }] });
      const { rows } = await server.database.pool.query(
        'select reason, sealed is not null as sealed from change_rejected order by kept_at desc limit 1',
      );
      expect(rows).toEqual([{ reason, sealed: true }]);
      const refused = await post(lines(change(), bad), { query: '?strict=true' });
      expect(await refused.json()).toMatchObject({ status: 422, details: [{ field: '1', message: reason }] });
    },
  );

  test('nothing where it is strict and one change is rejected; without, the others, and keeps that one', async () => {
    const good = change();
    const body = lines(good, change({ entity: 'agent' }), change({ at: '2099-01-01T00:00:00Z' }));
    const refused = await post(body, { query: '?strict=true' });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toEqual({
      status: 422,
      type: 'change_rejected',
      message: '2 of the changes cannot be recorded. None was.',
      details: [
        { field: '1', message: '"entity" is one that this service records itself' },
        { field: '2', message: '"at" is more than 5 minutes in the future' },
      ],
    });
    expect(await itemOf(good.entityId)).toBe(undefined);
    const { rows: before } = await server.database.pool.query('select count(*)::int as kept from change_rejected');
    expect(await (await post(body, { query: '?strict=false' })).json()).toMatchObject({
      recorded: 1,
      rejected: [{ index: 1 }, { index: 2 }],
    });
    const { rows: after } = await server.database.pool.query('select count(*)::int as kept from change_rejected');
    expect(after[0]?.kept).toBe(before[0]?.kept + 2);
  });
});

describe('the status, where changes are rejected', () => {
  const bad = () => change({ op: 'remove' });
  const rejection = (index: number) => ({ index, reason: expect.stringMatching(/^"op" is not insert, create/) });
  const keptRows = async () =>
    (await server.database.pool.query('select count(*)::int as kept from change_rejected')).rows[0]?.kept as number;

  test.each([
    ['lines', 'application/x-ndjson', (...changes: object[]) => lines(...changes)],
    ['an array', 'application/json', (...changes: object[]) => JSON.stringify(changes)],
  ])('of %s is 400 with the counts if all are, and they are stored; 200 if not', async (_what, type, write) => {
    const before = await keptRows();
    const all = await post(write(bad(), bad()), { type });
    expect(all.status).toBe(400);
    expect(await all.json()).toEqual({ ...counts, read: 2, rejected: [rejection(0), rejection(1)] });
    expect(await keptRows()).toBe(before + 2);
    const mixed = await post(write(bad(), change(), bad()), { type });
    expect(mixed.status).toBe(200);
    expect(await mixed.json()).toEqual({ ...counts, read: 3, recorded: 1, rejected: [rejection(0), rejection(2)] });
    const ignored = await post(write({ ...bad() }, change({ op: 'update', before: 1, after: 1 })), { type });
    expect(ignored.status).toBe(200);
  });

  test('of one change alone is 400, whatever rejects it; of no change 200', async () => {
    const type = 'application/json';
    const answer = await post(JSON.stringify(change({ at: '2099-01-01T00:00:00Z' })), { type });
    expect([answer.status, await answer.json()]).toEqual([
      400,
      { ...counts, read: 1, rejected: [{ index: 0, reason: '"at" is more than 5 minutes in the future' }] },
    ]);
    expect((await post('not JSON')).status).toBe(400);
    for (const options of [{}, { type }]) {
      const none = await post('type' in options ? '[]' : '\n', options);
      expect([none.status, await none.json()]).toEqual([200, counts]);
    }
  });
});

describe('the actor', () => {
  test('of a client without recorder.actor_set is its name, and another one is rejected', async () => {
    const plain = change();
    const body = lines(plain, change({ actor: 'system' }), change({ actor: 'Plain shop' }), change({ actor: null }));
    const answer = await post(body, { token: withoutActor });
    const reason = '"actor", "actorId" and "onBehalfOf" need the scope recorder.actor_set';
    expect(await answer.json()).toMatchObject({
      recorded: 2,
      rejected: [
        { index: 1, reason },
        { index: 2, reason },
      ],
    });
    expect(await itemOf(plain.entityId)).toMatchObject({ actor: 'Plain shop' });
  });

  test('recorder.actor_set alone records nothing', async () => {
    const actorOnly = await server.token(tenant, { scope: 'recorder.actor_set' });
    expect((await post(lines(change()), { token: actorOnly })).status).toBe(403);
  });
});

describe('who may record', () => {
  test('needs a token of the tenant with the scope, on the recorder alone', async () => {
    const body = lines(change());
    const reader = await server.token(tenant, { scope: 'changelog.changelog_manage' });
    expect((await recorder.post(tenant, body)).status).toBe(401);
    expect((await post(body, { token: reader })).status).toBe(403);
    expect((await recorder.post('other', body, { token })).status).toBe(403);
    const main = await server.call(`/recorder/${tenant}/changes`, { token, method: 'POST', body });
    expect(main.status).toBe(404);
    expect((await fetch(`${recorder.baseUrl}/changelog/${tenant}/changelogs`)).status).toBe(404);
  });

  test('may use HTTP Basic, until the client is revoked', async () => {
    const { clientId, clientSecret } = await server.createClient(tenant, { scope });
    const basic = (secret: string) => ({
      authorization: `Basic ${Buffer.from(`${clientId}:${secret}`).toString('base64')}`,
    });
    const send = async (secret: string) => await recorder.post(tenant, lines(change()), { headers: basic(secret) });
    expect((await send(clientSecret)).status).toBe(200);
    expect((await send(clientSecret)).status).toBe(200);
    expect((await send('wrong')).status).toBe(401);
    await revokeClient(server.context.db, clientId);
    await expect.poll(async () => (await send(clientSecret)).status).toBe(401);
    const main = await server.call(`/changelog/${tenant}/changelogs`, { headers: basic(clientSecret) });
    expect(main.status).toBe(401);
  });

  test('gets a token, the keys and the description at the recorder', async () => {
    const { clientId, clientSecret } = await server.createClient(tenant, { scope });
    const answer = await fetch(`${recorder.baseUrl}/oauth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    const { access_token: own } = (await answer.json()) as { access_token: string };
    expect((await post(lines(change()), { token: own })).status).toBe(200);
    expect((await fetch(`${recorder.baseUrl}/.well-known/jwks.json`)).status).toBe(200);
    expect((await fetch(`${recorder.baseUrl}/health/ready`)).status).toBe(200);
    const { paths } = (await (await fetch(`${recorder.baseUrl}/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(paths)).toContain('/recorder/{tenant}/changes');
    expect(Object.keys(paths)).not.toContain('/changelog/{tenant}/changelogs');
  });
});

describe('a body that cannot be read', () => {
  const type = 'application/json';

  test.each([
    ['is no JSON', '{"a":', { type }, 400],
    ['is empty', '', { type }, 400],
    ['is no UTF-8', Buffer.from('{"a":"\xff"}', 'latin1'), { type }, 400],
    ['is no gzip', 'abc', { headers: { 'content-encoding': 'gzip' } }, 400],
    ['is half a gzip', gzipSync('abcabc').subarray(0, 12), { headers: { 'content-encoding': 'gzip' } }, 400],
    ['is no zstd', 'abc', { headers: { 'content-encoding': 'zstd' } }, 400],
    [
      'has something else after its zstd',
      Buffer.concat([zstdCompressSync(lines(change())), Buffer.from('abc')]),
      { headers: { 'content-encoding': 'zstd' } },
      400,
    ],
    ['has another encoding', 'abc', { headers: { 'content-encoding': 'br' } }, 415],
    ['has another type', 'abc', { type: 'text/plain' }, 415],
    ['comes with a wrong parameter', lines(change()), { query: '?strict=yes' }, 400],
  ])('that %s', async (_what, body, options, status) => {
    expect((await post(body, options)).status).toBe(status);
  });

  test('lines are rejected one by one', async () => {
    const body = Buffer.concat([Buffer.from(`{"a":\n\n${lines(change())}`), Buffer.from('{"a":"\xff"}', 'latin1')]);
    expect(await (await post(body)).json()).toMatchObject({
      read: 3,
      recorded: 1,
      rejected: [
        { index: 0, reason: expect.stringMatching(/^cannot be read as JSON/) },
        { index: 2, reason: 'is no UTF-8' },
      ],
    });
  });
});

describe('limits, on both sides', () => {
  const statusOf = async (body: string | Uint8Array<ArrayBuffer>, options: PostOptions = {}) =>
    (await post(body, options)).status;

  test('2,000 changes', async () => {
    const changes = Array.from({ length: 2_001 }, () => change());
    expect(await statusOf(lines(...changes))).toBe(413);
    expect(await statusOf(JSON.stringify(changes), { type: 'application/json' })).toBe(413);
    expect(await statusOf(lines(...changes.slice(1)))).toBe(200);
    expect(await statusOf(JSON.stringify(changes.slice(1)), { type: 'application/json' })).toBe(200);
  });

  test('8 MiB of several changes, 16 MiB of one', async () => {
    // Blanks are bytes as others are, and need not be recorded.
    const sized = (bytes: number) => {
      const text = JSON.stringify(change());
      return `{${' '.repeat(bytes - text.length)}${text.slice(1)}`;
    };
    const megabyte = 1024 * 1024;
    const small = `${JSON.stringify(change())}\n`;
    expect(await statusOf(`${small}${sized(8 * megabyte - small.length)}`)).toBe(200);
    expect(await statusOf(`${small}${sized(8 * megabyte - small.length + 1)}`)).toBe(413);
    const longest = sized(16 * megabyte);
    const tooLong = sized(16 * megabyte + 1);
    expect(await statusOf(longest)).toBe(200);
    expect(await statusOf(tooLong)).toBe(413);
    const packed = { type: 'application/json', headers: { 'content-encoding': 'gzip' } };
    expect(await statusOf(gzipSync(longest, { level: 1 }), packed)).toBe(200);
    expect(await statusOf(gzipSync(tooLong, { level: 1 }), packed)).toBe(413);
  });

  test('1,000,000 values', async () => {
    const withValues = (zeros: number) => JSON.stringify(change({ after: Array(zeros).fill(0) }));
    const others = measureJson(withValues(0), 10).values;
    expect(await statusOf(withValues(1_000_000 - others))).toBe(200);
    expect(await statusOf(withValues(1_000_001 - others))).toBe(413);
    expect(await statusOf(withValues(1_000_001 - others), { type: 'application/json' })).toBe(413);
  });

  test('10,000 levels', async () => {
    const nested = (levels: number) =>
      JSON.stringify(change()).replace('{"a":1}', '['.repeat(levels) + ']'.repeat(levels));
    for (const type of ['application/x-ndjson', 'application/json']) {
      expect(await statusOf(nested(10_000), { type })).toBe(200);
      expect(await statusOf(nested(10_001), { type })).toBe(413);
    }
  });

  test.each([
    ['gzip', gzipSync],
    ['zstd', zstdCompressSync],
  ] as const)('a bomb of %s is unpacked as far as the limit', async (encoding, pack) => {
    // Ten parts, one after another, are one text for both.
    const bomb = Buffer.concat(Array(10).fill(pack(Buffer.alloc(20 * 1024 * 1024))));
    expect(bomb.length).toBeLessThan(1024 * 1024);
    const before = process.memoryUsage().rss;
    expect(await statusOf(bomb, { headers: { 'content-encoding': encoding } })).toBe(413);
    expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  });
});

test('while the database is away nothing is taken, and the answer says when to send it again', async () => {
  const body = lines(change());
  expect((await post(body)).status).toBe(200);
  const again = lines(change());
  const bringBack = await takeDatabaseAway(server.database.url);
  try {
    const answer = await post(again);
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toMatch(/^[0-9]+$/);
  } finally {
    await bringBack();
  }
  const answered = async () => (await (await post(again)).json()) as { recorded?: number; duplicate?: number };
  await expect.poll(answered).toMatchObject({ read: 1 });
  expect(await answered()).toMatchObject({ duplicate: 1 });
});

test('what clients send is in no line of the log', async () => {
  const canary = 'canary-8112';
  await post(lines({ ...change(), id: undefined, after: { canary } }, change({ entity: 'agent', name: canary })));
  await post(`{"${canary}`, { type: 'application/json' });
  expect(server.logLines.join('')).not.toContain(canary);
  expect(server.logLines.join('')).toContain('a rejected change was stored');
});
