import { expect, test } from 'vitest';
import { currentWork, doWork } from '../../../src/core/fairness/work.ts';
import { createCanceller } from '../../../src/postgres/connections/canceller.ts';
import { TenantConnection } from '../../../src/postgres/connections/tenant-connection.ts';
import { isWorkerUnreachable } from '../../../src/postgres/connections/unreachable.ts';
import { isLostRace } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

// What Citus says, word for word.
const message = 'cannot execute a distributed query from a query on a shard';

const database = closeAfterAll(await createTestDatabase());

/** The error of a statement on a tenant's connection, and how often the connection looked for moves. */
async function errorOf(statement: string, moved: boolean): Promise<{ error: unknown; asked: number }> {
  let asked = 0;
  const hasMovedTenants = async () => {
    asked += 1;
    return moved;
  };
  const canceller = createCanceller({ connectionString: database.url });
  const options = { canceller, pooled: false, maxSilence: 5_000, hasMovedTenants };
  const connection = new TenantConnection(await database.pool.connect(), options);
  try {
    const error = await doWork({ tenant: 'acme' }, async () => {
      connection.begin({ step: currentWork()?.beginStep() });
      return await connection.query(statement).catch((reason: unknown) => reason);
    });
    return { error, asked };
  } finally {
    connection.release();
    await canceller.close();
  }
}

const raise = (text: string) => `do $$ begin raise '${text}'; end $$`;

test('what a worker says of a tenant that has left it is a 503 only where a cluster has moved tenants', async () => {
  const { error, asked } = await errorOf(raise(message), true);
  expect(error).toMatchObject({ name: 'TenantMoved', cause: { message } });
  expect([asked, isWorkerUnreachable(error), isLostRace(error)]).toEqual([1, true, true]);
});

test('the same words without a move are a mistake of a routine, and no 503', async () => {
  const { error, asked } = await errorOf(raise(message), false);
  expect(error).toMatchObject({ name: 'error', message });
  // Work that may be repeated is repeated all the same, and fails in the end.
  expect([asked, isWorkerUnreachable(error), isLostRace(error)]).toEqual([1, false, true]);
});

test('other errors ask nothing', async () => {
  const { error, asked } = await errorOf(raise('another'), true);
  expect(error).toMatchObject({ name: 'error', message: 'another' });
  expect([asked, isWorkerUnreachable(error), isLostRace(error)]).toEqual([0, false, false]);
});
