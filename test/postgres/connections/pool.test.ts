import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { enterTrace, type Tracer } from '../../../src/core/trace.ts';
import { createPool, maxOpening } from '../../../src/postgres/connections/pool.ts';
import { createTenant, tenantExists, tenantPattern } from '../../../src/postgres/tenants/tenants.ts';
import { inPoolTransaction, inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { startDatabaseProxy } from '../../support/server/database-proxy.ts';
import { eventually, letOthersWork } from '../../support/server/patience.ts';

const database = closeAfterAll(await createTestDatabase());

test('an int8 is a number, and one that a number cannot hold is an error rather than rounded', async () => {
  const { rows } = await database.pool.query('select 9007199254740991::int8 as n, count(*) as c');
  expect(rows).toEqual([{ n: 9007199254740991, c: 1 }]);
  await expect(database.pool.query('select 9007199254740993::int8')).rejects.toThrow('beyond the safe integers');
  // The connection is good for the next query.
  expect((await database.pool.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
});

test('a date stays the day it is, whatever the time zone of the machine', async () => {
  const { rows } = await database.pool.query("select '2026-09-15'::date as day, now() as at");
  expect(rows[0].day).toBe('2026-09-15');
  expect(rows[0].at).toBeInstanceOf(Date);
});

test('a named statement with a callback is answered as by the driver: rows, errors, options, and one text for a name', async () => {
  const pool = createPool(database.url, { maximum: 1 });
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  const ask = (statement: pg.QueryConfig) =>
    new Promise<unknown>((resolve) => {
      void client.query(statement, (error: Error | null, result: pg.QueryResult) => resolve(error ?? result.rows));
    });
  const named = { name: 'named', text: 'select $1::bigint as n, $2::text[] as texts' };
  for (let time = 0; time < 2; time++) {
    expect(await ask({ ...named, values: [7, ['a', null]] })).toEqual([{ n: 7, texts: ['a', null] }]);
  }
  expect(await ask({ ...named, values: [1, []], ...{ rowMode: 'array' } })).toEqual([[1, []]]);
  expect(await ask({ ...named, values: ['none', []] })).toMatchObject({ code: '22P02' });
  expect(await ask({ ...named, text: 'select 2', values: [] })).toMatchObject({
    message: expect.stringContaining("'named' was used for a different statement"),
  });
  expect((await client.query({ ...named, values: [8, []] })).rows).toEqual([{ n: 8, texts: [] }]);
  const { rows } = await client.query('select name from pg_prepared_statements');
  expect(rows).toEqual([{ name: 'named' }]);
  client.release();
});

test('the server compiles no statements, whatever it does for others and whatever options the URL has', async () => {
  const name = new URL(database.url).pathname.slice(1);
  await database.pool.query(`alter database ${name} set jit = on`);
  for (const options of ['', '-c work_mem=5MB']) {
    const url = new URL(database.url);
    if (options !== '') url.searchParams.set('options', options);
    const pool = createPool(url.href);
    onTestFinished(() => pool.end());
    expect((await pool.query('show jit')).rows).toEqual([{ jit: 'off' }]);
  }
});

test('connections that are lost are replaced, and the process continues', async () => {
  const lost: Error[] = [];
  const pool = createPool(database.url, {
    onLostConnection: (error) => lost.push(error),
    applicationName: 'to be cut',
  });
  await pool.query('select 1');
  const client = await pool.connect();
  const cut = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'to be cut'";
  await database.pool.query(cut);
  await expect(client.query('select 1')).rejects.toThrow();
  client.release(true);
  expect((await pool.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
  await database.pool.query(cut);
  await eventually(() => lost.length).toBe(1);
  expect((await pool.query('select 3 as n')).rows).toEqual([{ n: 3 }]);
  await pool.end();
});

test('a connection whose server has gone without a word is closed, and the next one is good', async () => {
  const proxy = await startDatabaseProxy(database.url);
  const pool = createPool(proxy.url, { silenceLimit: 300 });
  const { rows } = await pool.query('select pg_backend_pid() as process');
  // One that owes nothing is kept, however long it is silent.
  await letOthersWork(600);
  expect((await pool.query('select pg_backend_pid() as process')).rows).toEqual(rows);
  proxy.failAfter(0, 'silent');
  await expect(pool.query('select 1')).rejects.toThrow('Connection terminated');
  proxy.mend();
  expect((await pool.query('select 2 as n')).rows).toEqual([{ n: 2 }]);
  await pool.end();
  await proxy.close();
});

test('a pool opens its connections two at a time, and gives up those that wait for their turn', async () => {
  const pool = createPool(database.url, { maximum: 10 });
  const clients = await Promise.all(Array.from({ length: 10 }, () => pool.connect()));
  expect(pool.totalCount).toBe(10);
  for (const client of clients) client.release();
  await pool.end();

  const accepted: Socket[] = [];
  let isRefusing = false;
  const server = createServer((socket) => {
    accepted.push(socket);
    if (isRefusing) socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const askTenTimes = async (connectionLimit: number): Promise<string[]> => {
    const poolOfTen = createPool(`postgres://nobody@127.0.0.1:${port}/none`, { maximum: 10, connectionLimit });
    const answers = await Promise.allSettled(Array.from({ length: 10 }, () => poolOfTen.query('select 1')));
    await poolOfTen.end();
    return answers.map((answer) => (answer.status === 'rejected' ? String(answer.reason.message) : 'answered'));
  };
  const refused = askTenTimes(60_000);
  await eventually(() => accepted.length).toBe(maxOpening);
  // Connections are accepted in the order of their requests, so this is the next one.
  connect(port, '127.0.0.1').on('error', () => {});
  await eventually(() => accepted.length).toBe(maxOpening + 1);
  isRefusing = true;
  for (const socket of accepted) socket.destroy();
  expect(await refused).not.toContain('answered');
  expect(accepted).toHaveLength(11);
  isRefusing = false;
  expect(new Set(await askTenTimes(200))).toEqual(new Set(['Connection terminated due to connection timeout']));
  for (const socket of accepted) socket.destroy();
  server.close();
});

test('a connection that the server ends as soon as it is open ends no process: its caller gets the error', async () => {
  const message = (type: string, content: string) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(content.length + 4);
    return Buffer.concat([Buffer.from(type), length, Buffer.from(content)]);
  };
  const fault = message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0');
  // In one piece: the driver reads that it may ask, and that it is over, before its caller has the connection.
  const opened = Buffer.concat([message('R', '\0\0\0\0'), message('Z', 'I'), fault]);
  const server = createServer((socket) => socket.once('data', () => socket.end(opened))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const pool = createPool(`postgres://nobody@127.0.0.1:${port}/none`);
  await expect(pool.query('select 1')).rejects.toThrow();
  await pool.end();
  server.close();
});

test('behind a pooler statements have no names, and can be traced', async () => {
  const names: string[] = [];
  const span = { context: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true }, end: () => {} };
  const tracer: Tracer = {
    begin(name) {
      names.push(name);
      return span;
    },
    close: async () => {},
  };
  const pool = createPool(`${database.url}?pooler=transaction`, { tracer, maximum: 1 });
  const named = { name: 'one', text: 'select count(*) as n from pg_prepared_statements' };
  for (let round = 0; round < 2; round += 1) {
    expect((await enterTrace(span.context, () => pool.query(named))).rows).toEqual([{ n: 0 }]);
  }
  expect(names).toEqual(['SELECT', 'SELECT']);
  await pool.end();
});

test('a transaction is committed when its work returns and rolled back when it throws', async () => {
  const fault = new Error('no');
  await inTransaction(database.db, (transaction) => createTenant(transaction, 'kept'));
  const failing = inTransaction(database.db, async (transaction) => {
    await createTenant(transaction, 'lost');
    throw fault;
  });
  await expect(failing).rejects.toBe(fault);
  expect(await tenantExists(database.db, 'kept')).toBe(true);
  expect(await tenantExists(database.db, 'lost')).toBe(false);
  await expect(inPoolTransaction(database.pool, (client) => client.query('select 1/0'))).rejects.toThrow('by zero');
  expect((await database.pool.query('select 1 as n')).rows).toEqual([{ n: 1 }]);
});

test('two transactions that conflict are retried, within the number of retries', async () => {
  await createTenant(database.db, 'race');
  let attempts = 0;
  const { promise: bothHaveLooked, resolve: proceed } = Promise.withResolvers<void>();
  const touch = () =>
    inTransaction(
      database.db,
      async (transaction) => {
        attempts++;
        await transaction.selectFrom('tenant').selectAll().where('tenant', '=', 'race').execute();
        if (attempts === 2) proceed();
        await bothHaveLooked;
        await transaction
          .updateTable('tenant')
          .set({ created_at: new Date(attempts) })
          .where('tenant', '=', 'race')
          .execute();
      },
      { isolation: 'repeatable read', retries: 3 },
    );
  await Promise.all([touch(), touch()]);
  expect(attempts).toBe(3);
});

test('the database itself refuses a tenant whose name may not be', async () => {
  for (const name of ['Acme', '1acme', 'a', 'ac me', 'a'.repeat(64), 'acme\n', 'äcme']) {
    expect(tenantPattern.test(name)).toBe(false);
    await expect(createTenant(database.db, name)).rejects.toThrow('tenant_name');
  }
  for (const name of ['ac', 'acme2', 'a'.repeat(63)]) {
    expect(tenantPattern.test(name)).toBe(true);
    expect(await createTenant(database.db, name)).toBe(true);
    expect(await createTenant(database.db, name)).toBe(false);
  }
});
