import { expect, test } from 'vitest';
import { prepareQueue } from '../../src/jobs/queue.ts';
import { annals } from '../support/server/command.ts';
import {
  createEmptyTestDatabase,
  createTestDatabaseForThisTest,
  type TestDatabase,
} from '../support/server/database.ts';

const key = Buffer.alloc(32, 7).toString('base64');

test('several processes prepare the queue at once', async () => {
  const database = await createTestDatabaseForThisTest();
  await Promise.all([prepareQueue(database.pool), prepareQueue(database.pool), prepareQueue(database.pool)]);
  expect(await queuesOf(database)).toEqual(['annals.agent-chat', 'annals.export']);
});

test('annals migrate prepares it, so that the service need not be allowed to', async () => {
  const database = await createEmptyTestDatabase();
  try {
    const environment = { DATABASE_URL: database.url, ANNALS_SECRET_KEY: key };
    expect((await annals(['migrate'], environment)).code).toBe(0);
    expect((await annals(['migrate'], environment)).stdout).toBe('{"migrations":[]}\n');
    expect(await queuesOf(database)).toEqual(['annals.agent-chat', 'annals.export']);
  } finally {
    await database.drop();
  }
});

async function queuesOf({ pool }: TestDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(`select name from pgboss.queue order by name collate "C"`);
  return rows.map(({ name }) => name).filter((name) => name.startsWith('annals.'));
}
