import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { eraseSubject } from '../../../src/history/erasure/erase.ts';
import { type Doing, places } from '../../../src/history/erasure/places.ts';
import { replaceInJson, replaceInText } from '../../../src/history/erasure/replace-in-text.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { rejectedRow } from '../../../src/recording/batches/kept-change.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';

const tenant = 'acme';
const jane = 'Jane "J." Canary';
const sealer = createSealer([Buffer.alloc(32, 3)]);

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  await createTenant(database.db, tenant);
  await createTenant(database.db, 'globex');
});

afterAll(() => database.drop());

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

test('in JSON, texts within texts are searched, and numbers keep their digits', () => {
  const inner = JSON.stringify({ actor: jane, q: `actor:${JSON.stringify(jane)}` });
  const text = `{"n":1.50,"q":${JSON.stringify(inner)},"b":"\\u004aane \\"J.\\" Canary"}`;
  const replaced = replaceInJson(text, { needles: [jane], replacement: 'erased-1' });
  expect(replaced).not.toContain('Canary');
  expect(JSON.parse(JSON.parse(replaced).q)).toMatchObject({ actor: 'erased-1' });
  expect(replaced.startsWith('{"n":1.50,')).toBe(true);
});

/** A value with the name for a column of that type. */
function canaryFor(type: string, column: string, unique: string): unknown {
  const query = `actor:${JSON.stringify(jane)} and ${unique}`;
  if (type === 'json' || type === 'jsonb') return JSON.stringify({ id: unique, q: query, of: [jane] });
  if (type === 'text' && /document|exchange|input|counted|call/.test(column))
    return JSON.stringify({ id: unique, q: query });
  if (type === 'text') return `${jane} ${unique}`;
  throw new Error(`no canary for ${column} ${type}`);
}

/** Any value of a column in which the name does not stand. */
function plainValueOf(type: string, unique: string): unknown {
  if (type === 'text[]') return '{}';
  if (type === 'bytea') return Buffer.from(unique);
  if (type === 'uuid') return `00000000-0000-4000-8000-${unique.padStart(12, '0')}`;
  if (type.startsWith('json')) return '{}';
  if (type.startsWith('timestamp')) return new Date();
  if (type === 'boolean') return false;
  return type === 'text' ? `u${unique}` : 1;
}

const searched: readonly Doing[] = ['text', 'row', 'clear'];

/** Writes a canary into each column that is searched, a row for each, with no regard to other tables. */
async function plant(of: string): Promise<number> {
  const { rows } = await database.pool.query<{ table: string; column: string; type: string; needed: boolean }>(
    `select c.relname as "table", a.attname as "column", format_type(a.atttypid, null) as type,
            a.attnotnull and not a.atthasdef and a.attidentity = '' as needed
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  const client = await database.pool.connect();
  let planted = 0;
  try {
    await client.query('begin');
    for (const [table, columns] of Object.entries(places)) {
      const ofTable = rows.filter((row) => row.table === table);
      for (const [column, [does]] of Object.entries(columns)) {
        if (!searched.includes(does)) continue;
        planted += 1;
        const unique = String(planted);
        const written = ofTable.filter((one) => one.needed || one.column === column);
        const values = written.map((one) =>
          one.column === 'tenant'
            ? of
            : one.column === column
              ? canaryFor(one.type, column, unique)
              : fixedOf(one, unique),
        );
        const names = written.map((one) => `"${one.column}"`).join(', ');
        await client.query(
          `insert into ${table} (${names}) values (${values.map((_value, index) => `$${index + 1}`).join(', ')})`,
          values,
        );
      }
    }
    await client.query('commit');
  } finally {
    client.release();
  }
  return planted;
}

/** Values that a check of the table asks for. */
function fixedOf({ table, column, type }: { table: string; column: string; type: string }, unique: string): unknown {
  if (table === 'job' && column === 'type') return 'AGENT_CHAT';
  if (table === 'job' && column === 'status') return 'success';
  if (table === 'agent_turn' && column === 'state') return 'answered';
  if (table === 'agent_turn' && column === 'position') return Number(unique);
  return plainValueOf(type, unique);
}

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

test('a canary in each column that is searched is gone, with what goes as a whole, and another tenant keeps its own', async () => {
  const { pool, db } = database;
  // References to other tables and checks of values are not what is tried here.
  const { rows: constraints } = await pool.query(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as statement from pg_constraint
       where contype in ('f', 'c') and confrelid <> 'job'::regclass and connamespace = 'public'::regnamespace`,
  );
  for (const { statement } of constraints) await pool.query(statement);
  const planted = await plant(tenant);
  expect(planted).toBeGreaterThan(40);
  await plant('globex');
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
    oauth_client: 2,
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
