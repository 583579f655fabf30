import { expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { eraseSubject } from '../../../src/history/erasure/erase.ts';
import { places } from '../../../src/history/erasure/places.ts';
import { replaceInJson, replaceInText } from '../../../src/history/erasure/replace-in-text.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { rejectedRow } from '../../../src/recording/batches/rejected-changes.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { plantCanaries } from '../../support/server/planted-canaries.ts';

const tenant = 'acme';
const jane = 'Jane "J." Canary';
const sealer = createSealer([Buffer.alloc(32, 3)]);

const database = closeAfterAll(await createTestDatabase());
await createTenant(database.db, tenant);
await createTenant(database.db, 'globex');

test.each([
  ['by Jane and Janet, Mary-Jane', 'Jane', 'by X and Janet, Mary-X'],
  ['7 of 17; entityId:7 (7) "7"', '7', '7 of 17; entityId:X (X) "X"'],
  ['a.b@c.org, xa.b@c.org', 'a.b@c.org', 'X, xa.b@c.org'],
  ['(Ü Ö) ÄÜ Ö', '(Ü Ö)', 'X ÄÜ Ö'],
  ['-4711/a-b.c|\\^$#&~ -4711/a-b.cd', '-4711/a-b.c', 'X|\\^$#&~ -4711/a-b.cd'],
  ['x a\\b^$.*+?()[]{}|/-!#%&,:;<=>@`~ y', 'a\\b^$.*+?()[]{}|/-!#%&,:;<=>@`~', 'x X y'],
])('in %j, %j is replaced where it is a word', (text, needle, expected) => {
  expect(replaceInText(text, { needles: [needle], replacement: 'X' })).toBe(expected);
});

test('in JSON, nested JSON strings are searched, and numbers keep their digits', () => {
  const inner = JSON.stringify({ actor: jane, q: `actor:${JSON.stringify(jane)}` });
  const text = `{"n":1.50,"q":${JSON.stringify(inner)},"b":"\\u004aane \\"J.\\" Canary"}`;
  const replaced = replaceInJson(text, { needles: [jane], replacement: 'erased-1' });
  expect(replaced).not.toContain('Canary');
  expect(JSON.parse(JSON.parse(replaced).q)).toMatchObject({ actor: 'erased-1' });
  expect(replaced.startsWith('{"n":1.50,')).toBe(true);
});

test.each([
  ['actor:Support entity:Support', 'actor:X entity:Support'],
  ['entityId:"Support" onBehalfOf:"Support"', 'entityId:"Support" onBehalfOf:"X"'],
  ['actor:"Support Team" actor:Support Team', 'actor:"Support Team" actor:Support Team'],
  ['actor:(Bob, "a, b (c)", Support, "Support") type:create', 'actor:(Bob, "a, b (c)", X, "X") type:create'],
  ['actor:("Doe, Support", "Support (x)", Support)', 'actor:("Doe, Support", "Support (x)", X)'],
  ['(actorId:create OR context."user-id":create) type:create', '(actorId:X OR context."user-id":X) type:create'],
  ['type:(create, delete) path:create related.entityId:create', 'type:(create, delete) path:create related.entityId:create'],
  ['actorId:u-17 entityId:u-17 path:(a, u-17) related.entityId:"u-17"', 'actorId:X entityId:u-17 path:(a, u-17) related.entityId:"u-17"'],
  ['related:elemMatch(entity:customer entityId:u-17) context.owner:u-17', 'related:elemMatch(entity:customer entityId:u-17) context.owner:X'],
  ['by u-17, not u-171, for Support to create', 'by X, not u-171, for Support to create'],
  ['q=\n"actor:Support", {"entityId":"u-17","onBehalfOf":{"name":"Support"}}', 'q=\n"actor:X", {"entityId":"u-17","onBehalfOf":{"name":"X"}}'],
  ['actorId:1717 entityId:1717 1717', 'actorId:X entityId:1717 1717'],
])('of a person by the id, %j becomes %j', (text, expected) => {
  const replacing = { needles: ['u-17', 'create', 'Support'], numbers: ['1717'], anywhere: ['u-17'], replacement: 'X' };
  expect(replaceInText(text, replacing)).toBe(expected);
  // As a member of a document, and of one within it.
  const within = { q: text, type: 'create', entityId: 'u-17', name: 'Support', actor: 'Support', create: [{ user: { id: '1717' } }] };
  const become = { ...within, q: expected, actor: 'X', create: [{ user: { id: 'X' } }] };
  expect(JSON.parse(replaceInJson(JSON.stringify(within), replacing))).toEqual(become);
  const outer = JSON.parse(replaceInJson(JSON.stringify({ input: JSON.stringify(within) }), replacing));
  expect(JSON.parse(outer.input)).toEqual(become);
}); // biome-ignore format: a line for each

async function dumpOf(of: string): Promise<string[]> {
  const found: string[] = [];
  for (const table of Object.keys(places)) {
    if (places[table]?.tenant === undefined) continue;
    const { rows } = await database.pool.query(`select t::text as row from ${table} t where tenant = $1 order by 1`, [
      of,
    ]);
    found.push(...rows.map(({ row }: { row: string }) => `${table} ${row}`));
  }
  return found;
}

test('a canary in each searched column is gone, rows deleted as a whole too, and another tenant keeps its own', async () => {
  const { pool, db } = database;
  expect((await plantCanaries(pool, tenant, [jane])).length).toBeGreaterThan(40);
  await plantCanaries(pool, 'globex', [jane]);
  const line = JSON.stringify({ actor: jane, entity: 'order' });
  const recordedBy = { way: 'recorder', by: 'shop' } as const;
  for (const [position, text] of [
    ['1', line],
    ['2', '{"actor":"Bob"}'],
  ] as const) {
    const source = { position, line: () => text };
    const row = rejectedRow(sealer, { tenant, storedTenant: tenant, recordedBy }, { reason: 'wrong', source });
    await pool.query(
      'insert into change_rejected (tenant, id, way, position, reason, sealed) values ($1, $2, $3, $4, $5, $6)',
      [tenant, row.id, 'recorder', position, row.reason, row.sealed],
    );
  }
  await pool.query(
    `insert into job (tenant, id, type, status, document, fields, input) values ($1, 'export', 'EXPORT', 'success', '{}', '{}', '{}')`,
    [tenant],
  );
  await pool.query(`insert into job_chunk (tenant, job, chunk, content, bytes) values ($1, 'export', 0, 'x', 1)`, [
    tenant,
  ]);
  const others = await dumpOf('globex');
  const options = {
    db,
    sealer,
    tenant,
    subject: { actor: jane, paths: [] },
    reason: 'request',
    now: Date.now,
  } as const;
  const { erasure, rows } = await eraseSubject({ ...options, rest: async () => {} });
  expect(erasure).toBeDefined();
  expect((await dumpOf(tenant)).filter((row) => /canary/i.test(row))).toEqual([]);
  expect(rows).toMatchObject({
    change_rejected: expect.any(Number),
    oauth_client: 3,
    saved_view: 2,
    mail: 3,
    job_chunk: 1,
  });
  const left = await pool.query('select position from change_rejected where tenant = $1', [tenant]);
  expect(left.rows).toEqual([{ position: '2' }]);
  expect((await pool.query('select from job_chunk where tenant = $1', [tenant])).rowCount).toBe(0);
  expect(await dumpOf('globex')).toEqual(others);
  expect(await eraseSubject({ ...options, rest: async () => {} })).toMatchObject({ erasure: undefined, entries: 0 });
});
