import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { PostgresTypes } from '../../../src/recording/mapping/postgres-types.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const database = await createTestDatabase();
const client = new pg.Client(database.url);
await client.connect();
await client.query(`set timezone = 'UTC'; set datestyle = 'ISO'; set bytea_output = 'hex'; set extra_float_digits = 1`);
await client.query(`
    create type mood as enum ('glad', 'sad');
    create type pair as (a integer, b text);
    create domain price as numeric(20, 4);
    create domain prices as price[]`);

afterAll(async () => {
  await client.end();
  await database.drop();
});

/** The JSON of a value as a document has it, and as PostgreSQL itself makes it. */
async function written(expression: string): Promise<{ json: string; own: string }> {
  const { rows } = await client.query(
    `select format('%s', ${expression}) as text, pg_typeof(${expression})::oid::int as oid, to_jsonb(${expression})::text as own`,
  );
  const types = new PostgresTypes(client);
  await types.load([rows[0].oid]);
  return { json: types.text(rows[0].oid, rows[0].text), own: rows[0].own };
}

test.each([
  ['9007199254740993::bigint', '9007199254740993'],
  ['-0.10::numeric', '-0.10'],
  [`'1.2300'::price`, '1.2300'],
  [`'NaN'::numeric`, '"NaN"'],
  [`'-Infinity'::numeric`, '"-Infinity"'],
  ['1e30::float8', '1e+30'],
  ['0.1::float4', '0.1'],
  [`'Infinity'::float8`, '"Infinity"'],
  [`'NaN'::float4`, '"NaN"'],
  ['true', 'true'],
  [`'{"b": 1.10, "a": [null]}'::json`, '{"b": 1.10, "a": [null]}'],
  [`'{"b": 1.10}'::jsonb`, '{"b": 1.10}'],
  [`array[1.10, null, 'NaN']::numeric[]`, '[1.10,null,"NaN"]'],
  [`array[array['a"b', 'c,d'], array['{}', 'NULL']]`, '[["a\\"b","c,d"],["{}","NULL"]]'],
  [`'[0:1]={1,2}'::int[]`, '[1,2]'],
  [`'{}'::text[]`, '[]'],
  [`array['{"a": 1}']::jsonb[]`, '[{"a": 1}]'],
  [`array[1.5, 2]::prices`, '[1.5000,2.0000]'],
  [`array['back\\slash', '']`, '["back\\\\slash",""]'],
  [`array['glad', 'sad']::mood[]`, '["glad","sad"]'],
  [`'2026-01-02 03:04:05.6+02'::timestamptz`, '"2026-01-02T01:04:05.6Z"'],
  [`'infinity'::timestamptz`, '"infinity"'],
  [`'2026-01-02 03:04:05'::timestamp`, '"2026-01-02T03:04:05"'],
  [`'2026-01-02'::date`, '"2026-01-02"'],
  [`'\\xdeadBEEF'::bytea`, '"\\\\xdeadbeef"'],
  [`'glad'::mood`, '"glad"'],
  [`'1 day 02:00'::interval`, '"1 day 02:00:00"'],
  [`'8c0bc5a8-1a5b-4bd5-a30b-7b0e4b8b0a1f'::uuid`, '"8c0bc5a8-1a5b-4bd5-a30b-7b0e4b8b0a1f"'],
  [`'[1,5)'::int4range`, '"[1,5)"'],
  [`'10.0.0.1'::inet`, '"10.0.0.1"'],
])('%s is %s in a document', async (expression, expected) => {
  const { json, own } = await written(expression);
  expect(json).toBe(expected);
  // The same document as PostgreSQL itself would make, so that a trigger tells the same.
  const same = JSON.parse(json.replace(/Z"$/, '+00:00"'));
  expect(same).toEqual(JSON.parse(own));
});

test.each([
  [`row(1, 'x y')::pair`, '"(1,\\"x y\\")"'],
  [`point(1, 2)`, '"(1,2)"'],
  [`array[box '((1,2),(3,4))', null]`, '["(3,4),(1,2)",null]'],
  [`'1 2'::int2vector`, '"1 2"'],
])('%s is its text, %s', async (expression, expected) => {
  expect((await written(expression)).json).toBe(expected);
});
