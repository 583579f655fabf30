import pg from 'pg';
import { expect, test } from 'vitest';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { comesTrueWithin, eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';

test('live answers as long as the process does, ready only while the database does', async () => {
  const server = await startTestServer();
  const ask = async (path: string) => {
    const response = await server.call(path);
    return { status: response.status, body: await response.json() };
  };
  const ok = { status: 200, body: { status: 'ok' } };
  expect(await ask('/health/live')).toEqual(ok);
  expect(await ask('/health/ready')).toEqual(ok);

  const bringBack = await takeDatabaseAway(server.database.url);
  expect(await ask('/health/ready')).toEqual({
    status: 503,
    body: { status: 503, type: 'service_unavailable', message: 'The database does not answer.' },
  });
  expect(await ask('/health/live')).toEqual(ok);

  await bringBack();
  expect(await ask('/health/ready')).toEqual(ok);
  await server.close();
});

test('a database that hangs is not ready within a second or two', async () => {
  const server = await startTestServer();
  const { pool } = server.context.vital;
  const busy = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  let status: number | undefined;
  const probe = server.call('/health/ready').then((response) => {
    status = response.status;
  });
  expect(await comesTrueWithin(3_000, () => status !== undefined)).toBe(true);
  await probe;
  expect(status).toBe(503);
  for (const client of busy) client.release();
  await server.close();
});

test('a database that answers and takes no writes is not ready, until it takes them again', async () => {
  const server = await startTestServer();
  // Ended on purpose.
  server.database.pool.on('error', () => {});
  const name = new URL(server.database.url).pathname.slice(1);
  const readOnly = async () => {
    await server.database.pool.query(`alter database ${name} set default_transaction_read_only = on`);
    // Sessions keep what they began with.
    const others = `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid() and backend_type = 'client backend'`;
    await server.database.pool.query(others, [name]);
  };
  const ask = async () => {
    const response = await server.call('/health/ready');
    const { status, message }: { status: string | number; message?: string } = JSON.parse(await response.text());
    return [response.status, message ?? status];
  };
  await readOnly();
  await eventually(ask).toEqual([503, 'The database takes no writes.']);
  const client = new pg.Client({
    connectionString: server.database.url,
    options: '-c default_transaction_read_only=off',
  });
  await client.connect();
  await client.query(`alter database ${name} reset default_transaction_read_only`);
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid() and backend_type = 'client backend'`,
    [name],
  );
  await client.end();
  await eventually(ask).toEqual([200, 'ok']);
  await server.close();
});
