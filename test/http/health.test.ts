import { expect, test } from 'vitest';
import { takeDatabaseAway } from '../support/server/database-away.ts';
import { comesTrueWithin } from '../support/server/patience.ts';
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
  const asked = server.call('/health/ready').then((response) => {
    status = response.status;
  });
  expect(await comesTrueWithin(3_000, () => status !== undefined)).toBe(true);
  await asked;
  expect(status).toBe(503);
  for (const client of busy) client.release();
  await server.close();
});
