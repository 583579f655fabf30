import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSortIndex } from '../../../src/tenants/custom-entities/sort-indexes.ts';
import { createValueIndex, valueIndexName } from '../../../src/tenants/custom-entities/value-index.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import type { JsonModel } from '../../support/oracle/json-model.ts';
import { annals } from '../../support/server/command.ts';
import { cancelIndexBuilds } from '../../support/server/index-builds.ts';
import { readInstances, storeInstances } from '../../support/server/instances.ts';
import { schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';

const place = { tenant: 'acme', type: 'THING' };
const server = closeAfterAll(await startTestServer());
const token = await server.token('acme');
await schemaClient(server, 'acme', token).type('THING');
const environment = {
  DATABASE_URL: server.database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'silent',
};

/** What `index list` shows. The service may have built its own indexes already, or not. */
async function listed(of: 'sort' | 'filters' | 'history'): Promise<Record<string, unknown>[]> {
  const { code, stdout } = await annals(['index', 'list'], environment);
  expect(code).toBe(0);
  const indexes: Record<string, unknown>[] = JSON.parse(stdout);
  return indexes.filter((index) => index.for === of);
}

// The first test, because each index makes it dearer to store so many.
test('a range of 20,000 instances is read by the index, a longer one as without an index', async () => {
  const { pool, db } = server.database;
  await schemaClient(server, 'acme', token).type('MANY');
  await pool.query(
    `insert into custom_instance (tenant, type, id, version, document, fields)
       select 'acme', 'MANY', n::text, 1, made.text, made.text::jsonb
         from generate_series(1, 20001) n, format('{"id":"%s","deep":{"amount":%s}}', n, n) made (text)`,
  );
  await createSortIndex(db, 'deep.amount');
  await pool.query('vacuum analyze custom_instance');
  const statements = recordStatements(...server.context.pool.pools);
  const request = { tenant: 'acme', type: 'MANY', token, by: 'list' } as const;
  for (const [q, total, byIndex] of [
    ['deep.amount:>=2', '20000', true],
    ['deep.amount:>=1', '20001', false],
  ] as const) {
    statements.length = 0;
    const page = await readInstances(server, { ...request, q }, {}, { 'X-Total-Count': 'true' });
    const read = statements.findLast(({ text }) => text.includes('key_id'));
    expect({ q, total: page.total, byIndex: read?.text.includes('sort_key(') }).toEqual({ q, total, byIndex });
  }
  await pool.query('truncate custom_instance');
  expect((await annals(['index', 'drop', '--sort', 'deep.amount'], environment)).code).toBe(0);
});

test('an index is made, listed and dropped, and a second call is no error', async () => {
  const made = await annals(['index', 'create', '--sort', "a.b:DESC,it's\\,odd"], environment);
  expect([made.code, made.stderr]).toEqual([0, '']);
  const sort = "a.b:DESC,it's\\,odd:ASC,_id:ASC";
  expect(JSON.parse(made.stdout)).toMatchObject({ sort, bytes: expect.any(Number), state: 'valid' });
  expect((await annals(['index', 'create', '--sort', "a.b:desc,it's\\,odd,_id"], environment)).stdout).toBe(
    made.stdout,
  );
  expect(await listed('sort')).toEqual([{ for: 'sort', ...JSON.parse(made.stdout) }]);
  expect((await annals(['index', 'drop', '--sort', "a.b:DESC,it's\\,odd"], environment)).code).toBe(0);
  expect((await annals(['index', 'drop', '--sort', "a.b:DESC,it's\\,odd"], environment)).code).toBe(1);
  expect(await listed('sort')).toEqual([]);
});

test('the list has the indexes that the service makes itself', async () => {
  await createValueIndex(server.context.db);
  const names = async () => [...(await listed('filters')), ...(await listed('history'))];
  await expect.poll(names, { timeout: 60_000 }).toMatchObject([
    { name: valueIndexName, state: 'valid' },
    { name: 'change_entry_short_id', state: 'valid' },
    { name: 'change_entry_long_id', state: 'valid' },
    { name: 'change_entry_paths', state: 'valid' },
    { name: 'change_entry_terms', state: 'valid' },
  ]);
});

test('the list marks indexes that are not complete, and one whose build was interrupted is rebuilt', async () => {
  const { pool } = server.database;
  const states = async () => (await listed('sort')).map(({ sort, state }) => [sort, state]);
  // A transaction that may write keeps the index from being finished.
  const writer = await pool.connect();
  await writer.query('begin');
  await writer.query('lock table custom_instance in row exclusive mode');
  const interrupted = expect(createSortIndex(server.context.db, 'b')).rejects.toThrow('canceling statement');
  await expect.poll(states).toEqual([[null, 'building']]);
  await cancelIndexBuilds(pool);
  await interrupted;
  await writer.query('rollback');
  writer.release();
  expect(await states()).toEqual([[null, 'invalid']]);
  expect((await annals(['index', 'create', '--sort', 'b'], environment)).code).toBe(0);
  expect(await states()).toEqual([['b:ASC,_id:ASC', 'valid']]);
  expect((await annals(['index', 'drop', '--sort', 'b'], environment)).code).toBe(0);
});

test.each([
  [['index']],
  [['index', 'make']],
  [['index', 'create']],
  [['index', 'create', '--sort', '_id']],
  [['index', 'create', '--sort', 'a', 'b']],
  [['index', 'create', 'a']],
  [['index', 'create', '--filters', 'a', 'b']],
  [['index', 'create', '--filters', 'a,b']],
  [['index', 'create', '--filters', 'lines.0.sku']],
  [['index', 'create', '--filters', '--sort', 'a']],
  [['index', 'drop', '--filters', 'a']],
  [['index', 'create', '--sort', 'a,b,c,d,e']],
  [['index', 'create', '--sort', 'a:UP']],
])('wrong usage: %j', async (args) => expect((await annals(args, environment)).code).toBe(2));

test('pages of the sort are read along the index, in both directions, and longest values fit it', async () => {
  const longest = (nth: number) => `${'\u{10fffd}'.repeat(127)}${nth % 7}`;
  await storeInstances(
    server,
    place,
    Array.from({ length: 150 }, (_, index) => ({
      id: `${'\u{10fffd}'.repeat(62)}${String(index).padStart(4, '0')}`,
      content: {
        members: Object.fromEntries(['a', 'b', 'c', 'd'].map((name): [string, JsonModel] => [name, longest(index)])),
      },
    })),
  );
  const statements = recordStatements(...server.context.pool.pools);
  for (const sort of ['a,b:DESC,c,d', 'a:DESC,b,c:DESC,d:DESC,_id:DESC', 'b']) {
    expect(await annals(['index', 'create', '--sort', sort], environment)).toMatchObject({ code: 0, stderr: '' });
    statements.length = 0;
    const read = (paging: Record<string, string>) =>
      readInstances(server, { ...place, token, by: 'list' }, { sort, pageSize: 50, ...paging });
    const first = await read({});
    const second = await read({ next: first.next ?? '' });
    expect((await read({ prev: second.prev ?? '' })).ids).toEqual(first.ids);
    const reading = statements.filter(({ text }) => text.includes('custom_instance'));
    expect(reading).toHaveLength(3);
    for (const { text, values } of reading) {
      const { rows } = await server.database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toContain('custom_instance_sort_');
      expect(plan).not.toContain('Seq Scan');
    }
  }
});

test('ranges and beginnings of strings are found by the index of the field, in either direction', async () => {
  const made = await annals(['index', 'create', '--filters', 'deep.amount'], environment);
  expect([made.code, JSON.parse(made.stdout).sort]).toEqual([0, 'deep.amount:ASC,_id:ASC']);
  expect((await annals(['index', 'create', '--sort', 'name:DESC,amount'], environment)).code).toBe(0);
  await storeInstances(
    server,
    place,
    Array.from({ length: 400 }, (_, index) => ({
      id: String(index).padStart(4, '0'),
      content: {
        members: {
          name: `thing ${String(index).padStart(4, '0')}`,
          deep:
            index === 7 ? [{ members: { amount: { number: '-5' } } }] : { members: { amount: { number: `${index}` } } },
        } satisfies Record<string, JsonModel>,
      },
    })),
  );
  await server.database.pool.query('analyze custom_instance');
  const statements = recordStatements(...server.context.pool.pools);
  for (const [q, ids] of [
    ['deep.amount:>397', ['0398', '0399']],
    ['deep.amount:(>=5 AND <8)', ['0005', '0006']],
    ['deep.amount:<1', ['0000', '0007']],
    ['name:"thing 0001*"', []],
    ['name:thing 0001*', ['0001']],
    ['name:~^thing.0001', ['0001']],
    ['name:~"^thing 039[89]"', ['0398', '0399']],
    ['name:>="thing 0398"', ['0398', '0399']],
    ['name:(nothing, thing 03?*, thing 0399*)', ['0399']],
  ] as const) {
    statements.length = 0;
    const { ids: found } = await readInstances(server, { ...place, token, by: 'list', q }, {});
    expect({ q, found }).toEqual({ q, found: ids });
    const { text = '', values = [] } = statements.findLast((statement) => statement.text.includes('key_id')) ?? {};
    const { rows } = await server.database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect({ q, plan }).toEqual({ q, plan: expect.stringMatching(/custom_instance_(?:sort|narrow_values)/) });
  }
});
