import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSealer } from '../../src/core/sealing.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { readInstances, storeInstances } from '../support/server/instances.ts';
import { startTestServer, testSecretKeys } from '../support/server/server.ts';

const hour = 60 * 60 * 1000;
const place = { tenant: 'acme', type: 'THING' };
const secret = 'a value that no cursor shows';
const invalid = { status: 400, type: 'validation_violation', message: 'The cursor is not valid for this request.' };

let now = Date.UTC(2026, 10, 20);
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token('acme');
const otherToken = await server.token('umbrella');
for (const [tenant, authorised] of [
  ['acme', token],
  ['umbrella', otherToken],
] as const) {
  for (const type of ['THING', 'OTHER']) {
    await server.call(`/schema/${tenant}/custom-entities`, {
      token: authorised,
      json: { id: type, name: { en: type } },
    });
    await storeInstances(
      server,
      { tenant, type },
      ['a', 'b', 'c', 'd'].map((id) => ({ id, content: { members: { name: secret, n: { number: '1' } } } })),
    );
  }
}

const list = (paging: Record<string, string | number>, q?: string) =>
  readInstances(server, { ...place, token, by: 'list', ...(q === undefined ? {} : { q }) }, paging);
const sorted = { sort: 'name', pageSize: 2 };

async function cursorOf(page: ReturnType<typeof list>): Promise<string> {
  return (await page).next ?? 'no cursor';
}

test('each bit of a cursor flipped, each length cut short, and anything appended is the same 400', async () => {
  const cursor = await cursorOf(list(sorted));
  const bytes = Buffer.from(cursor, 'base64url');
  expect(bytes.includes(secret)).toBe(false);
  const altered: string[] = [];
  for (let index = 0; index < bytes.length; index += 1) {
    const flipped = Buffer.from(bytes);
    flipped[index] = (flipped[index] ?? 0) ^ (1 << (index % 8));
    altered.push(flipped.toString('base64url'));
  }
  for (let length = 0; length < cursor.length; length += 1) altered.push(cursor.slice(0, length));
  for (const more of ['A', 'AA', 'AAAA', '=', '.', ' ', '\n', '%00', 'é', 'A'.repeat(5000)])
    altered.push(cursor + more);
  for (const [nth, text] of altered.entries()) {
    // Both are opened by one function.
    for (const parameter of nth % 10 === 0 ? ['next', 'prev'] : ['next']) {
      const page = await list({ ...sorted, [parameter]: text });
      expect({ text, body: page.body }).toEqual({ text, body: invalid });
    }
  }
  expect((await list({ ...sorted, next: cursor })).ids).toEqual(['c', 'd']);
});

test('only the one canonical form of base64url is taken', async () => {
  let cursor = await cursorOf(list(sorted));
  // A length with unused bits in the last character, so that there are other texts for the same bytes.
  for (let size = 2; Buffer.from(cursor, 'base64url').length % 3 === 0; size += 1) {
    cursor = await cursorOf(list({ sort: 'name', pageSize: 1 + (size % 3) }));
    if (size > 10) break;
  }
  const bytes = Buffer.from(cursor, 'base64url');
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const last = alphabet.indexOf(cursor.at(-1) ?? '');
  const forms = [
    bytes.toString('base64'),
    `${cursor}=`,
    `${cursor}==`,
    ` ${cursor}`,
    `${cursor.slice(0, 5)}\n${cursor.slice(5)}`,
    bytes.toString('hex'),
    ...[1, 2, 3].map((stray) => cursor.slice(0, -1) + alphabet[last ^ stray]),
  ].filter((form) => form !== cursor);
  for (const form of forms) expect((await list({ ...sorted, next: form })).body).toEqual(invalid);
});

test('a cursor is bound to tenant, operation, type, filter and sort', async () => {
  const next = await cursorOf(list(sorted, 'n:1'));
  const nextPage = { ...sorted, next };
  expect((await list(nextPage, 'n:1')).ids).toEqual(['c', 'd']);
  const elsewhere = [
    list(nextPage),
    list(nextPage, 'n:1.0'),
    list({ ...nextPage, sort: 'name:DESC' }, 'n:1'),
    list({ ...nextPage, sort: 'n' }, 'n:1'),
    list({ ...nextPage, sort: 'name,n' }, 'n:1'),
    list({ pageSize: 2, next }, 'n:1'),
    readInstances(server, { ...place, token, by: 'search', q: 'n:1' }, nextPage),
    readInstances(server, { ...place, type: 'OTHER', token, by: 'list', q: 'n:1' }, nextPage),
    readInstances(server, { ...place, tenant: 'umbrella', token: otherToken, by: 'list', q: 'n:1' }, nextPage),
  ];
  for (const page of await Promise.all(elsewhere)) expect(page.body).toEqual(invalid);
  const types = await server.call(`/schema/acme/custom-entities?next=${next}&sort=name`, { token });
  expect(await types.json()).toEqual(invalid);
});

test('a cursor grants no rights', async () => {
  const next = await cursorOf(list(sorted));
  const reader = await server.token('acme', { scope: 'schema.schema_read' });
  const page = await readInstances(server, { ...place, token: reader, by: 'list' }, { ...sorted, next });
  expect(page.status).toBe(403);
});

test('a cursor lives 24 hours', async () => {
  const next = await cursorOf(list(sorted));
  const begun = now;
  now = begun + 24 * hour - 1;
  const fresh = await server.tokenOf(await server.createClient('acme'));
  const read = () => readInstances(server, { ...place, token: fresh, by: 'list' }, { ...sorted, next });
  expect((await read()).status).toBe(200);
  now = begun + 24 * hour;
  expect((await read()).body).toEqual(invalid);
  now = begun;
});

test('a cursor sealed with a key that has been retired is refused, with one that is kept it opens', async () => {
  const next = await cursorOf(list(sorted));
  const fresh = randomBytes(32);
  for (const { keys, taken } of [
    { keys: [fresh, ...testSecretKeys], taken: true },
    { keys: [fresh], taken: false },
  ]) {
    const second = await startTestServer({ database: server.database, secretKeys: keys, clock: { now: () => now } });
    const page = await readInstances(
      second,
      { ...place, token: await second.token('acme'), by: 'list' },
      { ...sorted, next },
    );
    if (taken) expect(page.ids).toEqual(['c', 'd']);
    else expect(page.body).toEqual(invalid);
    await second.close();
  }
});

test('what was sealed for another purpose is no cursor', async () => {
  const sealed = Buffer.from(createSealer(testSecretKeys).seal(randomBytes(64), 'something else')).toString(
    'base64url',
  );
  expect((await list({ ...sorted, next: sealed })).body).toEqual(invalid);
});
