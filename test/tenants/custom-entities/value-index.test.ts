import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  createValueIndex,
  maxIndexedValues,
  valueIndexName,
} from '../../../src/tenants/custom-entities/value-index.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import type { JsonModel } from '../../support/oracle/json-model.ts';
import { annals } from '../../support/server/command.ts';
import { createMigratedTestDatabase } from '../../support/server/database.ts';
import { cancelIndexBuilds } from '../../support/server/index-builds.ts';
import { readInstances, storeInstances } from '../../support/server/instances.ts';
import { schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordStatements } from '../../support/server/statements.ts';

const place = { tenant: 'acme', type: 'THING' };
const database = closeAfterAll(await createMigratedTestDatabase());
const server = closeAfterAll(await startTestServer({ database }));
const token = await server.token('acme');
await schemaClient(server, 'acme', token).type('THING');
await storeInstances(
  server,
  place,
  Array.from({ length: 500 }, (_, index) => ({
    id: String(index).padStart(5, '0'),
    content: {
      members: {
        name: `thing ${index}`,
        amount: { number: `${index}.0` },
        even: index % 2 === 0,
        deep: { members: { 'a\0b': `x${index}` } },
        lines: [{ members: { sku: `s${index}`, amounts: [{ number: String(-index) }, index % 2 === 0] } }],
        grid: [[[`g${index}`]], []],
        digits: { members: { '0': `d${index}` } },
      } satisfies Record<string, JsonModel>,
    },
  })),
);

async function isValid(): Promise<boolean | undefined> {
  const { rows } = await server.database.pool.query<{ valid: boolean }>(
    'select indisvalid as valid from pg_index join pg_class c on c.oid = indexrelid where relname = $1',
    [valueIndexName],
  );
  return rows[0]?.valid;
}

test('the index is made after the start, and a second call makes none', async () => {
  await expect.poll(isValid, { timeout: 60_000 }).toBe(true);
  expect(await createValueIndex(server.context.db)).toBe(false);
});

describe('a value of any field is found by the index', () => {
  beforeAll(async () => {
    await server.database.pool.query(`drop index ${valueIndexName}`);
    const environment = {
      DATABASE_URL: server.database.url,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
      LOG_LEVEL: 'silent',
    };
    const made = await annals(['index', 'create', '--filters'], environment);
    expect([made.code, JSON.parse(made.stdout)]).toEqual([0, { name: valueIndexName, made: true }]);
  });

  test.each([
    ['name:"thing 7"', ['00007']],
    ['name:(thing 7, thing 8)', ['00007', '00008']],
    ['amount:7', ['00007']],
    ['amount:7e0 even:false', ['00007']],
    ['lines.0.sku:s7', ['00007']],
    ['lines.sku:s7', ['00007']],
    ['lines.sku:("s7", "s8")', ['00007', '00008']],
    ['lines.amounts:-7', ['00007']],
    ['lines.amounts.0:-7.0 lines.amounts:false', ['00007']],
    ['grid:g7', ['00007']],
    ['grid.0.0:g7', ['00007']],
    ['digits.0:d7', ['00007']],
    ['compoundLogicalQuery:((name:"thing 7") OR (amount:8.00))', ['00007', '00008']],
    ['amount:"7"', []],
    ['name:"nobody"', []],
  ])('%s', async (q, ids) => {
    const statements = recordStatements(...server.context.pool.pools);
    const page = await readInstances(server, { ...place, token, by: 'list', q }, {});
    expect(page.ids).toEqual(ids);
    const { text = '', values = [] } = statements.find((statement) => statement.text.includes('custom_instance')) ?? {};
    const { rows } = await server.database.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain(valueIndexName);
  });
});

test(`an instance of ${maxIndexedValues} values is in the index, one of more is not; a filter finds both`, async () => {
  const client = schemaClient(server, 'acme', token);
  await client.type('WIDE');
  // The document itself, its id, `metadata`, the three members of that, `name`, and the list.
  const content = (values: number) => ({ name: 'same', list: Array.from({ length: values - 8 }, (_, index) => index) });
  expect((await client.put('/WIDE/instances/narrow', content(maxIndexedValues))).status).toBe(201);
  expect((await client.put('/WIDE/instances/wide', content(maxIndexedValues + 1))).status).toBe(201);
  expect((await client.put('/WIDE/instances/wider', content(maxIndexedValues))).status).toBe(201);
  expect((await client.put('/WIDE/instances/wider', content(maxIndexedValues + 1))).status).toBe(204);
  const { rows } = await server.database.pool.query(
    "select id, wide from custom_instance where type = 'WIDE' order by id",
  );
  expect(rows.map(({ id, wide }) => [id, wide])).toEqual([
    ['narrow', 0],
    ['wide', 1],
    ['wider', 1],
  ]);
  for (const [q, ids] of [
    ['name:same', ['narrow', 'wide', 'wider']],
    ['list:4991', ['narrow', 'wide', 'wider']],
    [`list:${maxIndexedValues - 8}`, ['wide', 'wider']],
    ['list:-1', []],
  ] as const) {
    const page = await readInstances(server, { tenant: 'acme', type: 'WIDE', token, by: 'list', q }, {});
    expect(page.ids, q).toEqual(ids);
  }
});

test('writers and other processes do not wait for the index, and one whose build was interrupted is rebuilt', async () => {
  const { pool } = server.database;
  const { db } = server.context;
  await pool.query(`drop index ${valueIndexName}`);
  // A transaction that writes keeps the index from being finished.
  const writer = await pool.connect();
  await writer.query('begin');
  await writer.query(
    `update custom_instance set version = 2 where tenant = 'acme' and type = 'THING' and id = '00001'`,
  );
  const interrupted = expect(createValueIndex(db)).rejects.toThrow('canceling statement due to user request');
  await expect.poll(isValid).toBe(false);
  expect(await createValueIndex(db)).toBe(false);
  const client = schemaClient(server, 'acme', token);
  expect((await client.put('/THING/instances/00002', { name: 'written meanwhile' })).status).toBe(204);
  const page = await readInstances(server, { ...place, token, by: 'list', q: 'name:"written meanwhile"' }, {});
  expect(page.ids).toEqual(['00002']);
  await cancelIndexBuilds(pool);
  await interrupted;
  await writer.query('rollback');
  writer.release();
  expect(await isValid()).toBe(false);
  expect(await createValueIndex(db)).toBe(true);
  expect(await isValid()).toBe(true);
});
