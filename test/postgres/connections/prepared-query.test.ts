import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { doWork } from '../../../src/core/concurrency/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { maxCharacters, maxValues, PreparedQuery } from '../../../src/postgres/connections/prepared-query.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { startDatabaseProxy } from '../../support/server/database-proxy.ts';

let database: TestDatabase;
let pool: pg.Pool;
let client: pg.PoolClient;
/** The statements that the driver carried out, the newest last. */
const submitted: unknown[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  const { query } = pg.Client.prototype;
  const noted = function (this: pg.Client, ...given: unknown[]) {
    submitted.push(given[0]);
    return Reflect.apply(query, this, given);
  };
  // A connection keeps the function that it finds.
  Object.assign(pg.Client.prototype, { query: noted });
  pool = createPool(database.url, { maximum: 1 });
  client = await pool.connect();
  Object.assign(pg.Client.prototype, { query });
});

afterAll(async () => {
  client.release();
  await pool.end();
  await database.drop();
});

/** The statement's answer or its error, and whether the last execution was that of a prepared query. */
async function ask(statement: pg.QueryConfig): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  void client.query(statement, (error: Error | null, result: pg.QueryResult) => resolve(error ?? result));
  return await promise;
}

const isPrepared = () => submitted.at(-1) instanceof PreparedQuery;

const echo = {
  name: 'echo',
  text: 'select $1::text as one, $2::float8 as two, $3::boolean as three, $4::text as four',
};

describe('a statement that is sent as prepared', () => {
  test('has the answer that the driver gives, whatever its values are', async () => {
    await ask({ ...echo, values: ['', 0, true, null] });
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'binary-ascii' }),
      fc.constant("'; drop table x; --"),
    );
    const values = fc.tuple(fc.option(text), fc.option(fc.double()), fc.option(fc.boolean()), fc.option(text));
    await fc.assert(
      fc.asyncProperty(values, async (given) => {
        const answer = await ask({ ...echo, values: given });
        expect(isPrepared()).toBe(true);
        expect(told(answer)).toEqual(told(await client.query(echo.text, given).catch((error: unknown) => error)));
      }),
      { numRuns: 100 },
    );
  });

  test('has every value in its place, up to both limits; beyond them the driver sends it', async () => {
    const long = (characters: number) => ({ ...echo, values: ['a', null, null, '€'.repeat(characters - 1)] });
    for (const characters of [maxCharacters, maxCharacters + 1]) {
      expect(told(await ask(long(characters)))).toMatchObject([{ one: 'a', four: '€'.repeat(characters - 1) }]);
      expect(isPrepared()).toBe(characters === maxCharacters);
    }
    for (const count of [maxValues, maxValues + 1]) {
      const places = Array.from({ length: count }, (_none, place) => place);
      const text = `select array[${places.map((place) => `$${place + 1}::float8`).join()}] as all`;
      const statement = { name: `${count} values`, text, values: places.map((place) => place / 3) };
      await ask(statement);
      expect(told(await ask(statement))).toEqual([{ all: places.map((place) => place / 3) }]);
      expect(isPrepared()).toBe(count === maxValues);
    }
  });

  test('answers no row, many rows, and columns of all types as the driver does', async () => {
    const text = `select n, n::text as text, array[n, null] as list, null as nothing, '2026-09-15'::date as day, now() - now() as time,
      jsonb_build_object('n', n) as json from generate_series(1, $1::int) as n`;
    for (const count of [3, 0, 500]) {
      const answer = await ask({ name: 'rows', text, values: [count] });
      expect(isPrepared()).toBe(count !== 3);
      expect(answer).toMatchObject({ command: 'SELECT', rowCount: count, fields: { length: 7 } });
      expect(told(answer)).toEqual(told(await client.query(text, [count])));
    }
  });

  test('has the error of the server or of a column, before a row or after some, and the connection is good', async () => {
    const text = 'select 9007199254740990 + n / ($1::bigint - n) as n from generate_series(0, 3) as n';
    expect(await ask({ name: 'errors', text, values: [9] })).toMatchObject({ rowCount: 4 });
    const wrong: [unknown, object][] = [
      [2, { code: '22012' }],
      [0, { code: '22012' }],
      ['none', { code: '22P02' }],
      ['\0', { code: '22021' }],
      [4, { message: expect.stringContaining('beyond the safe integers') }],
    ];
    for (const [value, error] of wrong) {
      expect(await ask({ name: 'errors', text, values: [value] })).toMatchObject(error);
      expect(isPrepared()).toBe(true);
      expect(await ask({ name: 'errors', text, values: [9] })).toMatchObject({ rowCount: 4 });
    }
    expect(await ask({ name: 'errors', text, values: [] })).toMatchObject({ code: '08P01' });
    expect(await ask({ name: 'errors', text, values: [9] })).toMatchObject({ rowCount: 4 });
  });

  test('never has other columns than at first: the server refuses it then', async () => {
    await client.query('create temporary table columns (one text)');
    await client.query("insert into columns values ('a')");
    const all = { name: 'columns', text: 'select * from columns', values: [] };
    for (let time = 0; time < 2; time++) expect(told(await ask(all))).toEqual([{ one: 'a' }]);
    await client.query('alter table columns add two text');
    expect(told(await ask(all))).toEqual({ code: '0A000' });
    expect(isPrepared()).toBe(true);
    await client.query('alter table columns drop two');
    expect(told(await ask(all))).toEqual([{ one: 'a' }]);
  });

  test('is one that selects, with values that the driver need not make texts of', async () => {
    await client.query('create temporary table noted (what text)');
    const insert = { name: 'insert', text: 'insert into noted values ($1)', values: ['a'] };
    for (let time = 0; time < 3; time++) expect(await ask(insert)).toMatchObject({ command: 'INSERT', rowCount: 1 });
    expect(isPrepared()).toBe(false);
    const moments = { name: 'moments', text: 'select $1::timestamptz as at', values: [new Date(5)] };
    for (let time = 0; time < 2; time++) expect(told(await ask(moments))).toEqual([{ at: new Date(5) }]);
    expect(isPrepared()).toBe(false);
  });
});

test('statements on few connections that are cancelled, late, wrong or good each have their own end', async () => {
  const few = createTenantPool(database.url, { reads: 4, writes: 0, own: 1 });
  const named = {
    name: 'ends',
    text: `select $1::int as number, n / $2::int as n, pg_sleep($3::float8)::text as slept from generate_series(1, 2) as n`,
  };
  const kind = fc.constantFrom('good', 'wrong', 'malformed', 'late', 'gone', 'gone at once');
  const calls = fc.array(
    fc.record({ kind, sleep: fc.integer({ min: 0, max: 4 }), tenant: fc.constantFrom('one', 'two') }),
    {
      minLength: 1,
      maxLength: 40,
    },
  );
  const call = async (
    { kind: what, sleep, tenant }: { kind: string; sleep: number; tenant: string },
    number: number,
  ) => {
    const stop = new Stop();
    const values = [
      what === 'malformed' ? 'none' : number,
      what === 'wrong' ? 0 : 1,
      (what === 'late' ? 10 * sleep : sleep) / 1000,
    ];
    const options = what === 'late' ? { tenant, timeLimit: 1 + sleep } : { tenant, signal: stop };
    const asked = doWork(options, () => few.query({ ...named, values }));
    if (what === 'gone') setTimeout(() => stop.abort(new Error('gone')), sleep);
    if (what === 'gone at once') stop.abort(new Error('gone'));
    return await asked.then(
      ({ rows }) => rows.map((row) => `${row.number}:${row.n}`).join(),
      (error: Error & { code?: string; type?: string }) => error.code ?? error.type ?? error.message,
    );
  };
  await fc.assert(
    fc.asyncProperty(calls, async (given) => {
      const ends = await Promise.all(given.map(call));
      for (const [number, { kind: what }] of given.entries()) {
        const answer = `${number}:1,${number}:2`;
        const expected = {
          good: [answer],
          wrong: ['22012'],
          malformed: ['22P02'],
          late: [answer, 'service_unavailable'],
          gone: [answer, 'gone'],
          'gone at once': ['gone'],
        }[what];
        expect(expected).toContain(ends[number]);
      }
      expect(few.pools[0]?.totalCount).toBeLessThanOrEqual(4);
    }),
    { numRuns: 40 },
  );
  await few.end();
});

test('a connection that dies ends the statement under way, and the next one prepares anew', async () => {
  const proxy = await startDatabaseProxy(database.url);
  const behind = createTenantPool(proxy.url, { reads: 2, writes: 0, own: 1, maxSilence: 300 });
  const statement = { name: 'dies', text: 'select $1::int as n', values: [1] };
  const asked = async () => (await doWork({ tenant: 'acme' }, () => behind.query(statement))).rows;
  for (const fault of ['cut', 'away'] as const) {
    for (let time = 0; time < 3; time++) expect(await asked()).toEqual([{ n: 1 }]);
    proxy.failAfter(0, fault);
    await expect(asked()).rejects.toThrow();
    proxy.mend();
    for (let time = 0; time < 3; time++) expect(await asked()).toEqual([{ n: 1 }]);
  }
  await behind.end();
  await proxy.close();
});

/** What an answer tells; of an error of the server its code. */
function told(answer: unknown): unknown {
  if (answer instanceof pg.DatabaseError) return { code: answer.code };
  if (answer instanceof Error) return { message: answer.message };
  return (answer as pg.QueryResult).rows;
}
