import { CompiledQuery } from 'kysely';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { isUnreachable } from '../../../src/postgres/connections/unreachable.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { startDatabaseProxy } from '../../support/server/database-proxy.ts';
import { eventually } from '../../support/server/patience.ts';

const selectOne = { text: 'select 1 as one' };
const answer = [{ one: 1 }];
const forever = { text: 'select pg_sleep(600)' };

const database = await createTestDatabase();
const proxy = await startDatabaseProxy(database.url);
/** A tenant has one connection for reading and one for writing. */
const pool = createTenantPool(proxy.url, { reads: 2, writes: 2, own: 1, maxSilence: 300 });

afterEach(() => proxy.mend());

afterAll(async () => {
  await pool.end();
  await proxy.close();
  await database.drop();
});

const ofAcme = <Result>(work: () => Promise<Result>, signal = new Stop()) =>
  doWork({ tenant: 'acme', writes: true, signal }, work);

test('a statement of a server that has become silent ends after its cancelling, and the place is free', async () => {
  expect((await ofAcme(() => pool.query(selectOne))).rows).toEqual(answer);
  proxy.failAfter(0, 'silent');
  const stop = new Stop();
  const pending = ofAcme(() => pool.query(selectOne), stop);
  await eventually(() => proxy.sent).toBe(1);
  stop.abort(new Error('the client has gone'));
  await expect(pending).rejects.toThrow('the client has gone');
  proxy.mend();
  expect((await ofAcme(() => pool.query(selectOne))).rows).toEqual(answer);
});

test('a transaction that is rolled back on a silent connection ends too', async () => {
  const work = ofAcme(() =>
    inTransaction(createDatabase(pool), async (transaction) => {
      await transaction.executeQuery(CompiledQuery.raw('select 1'));
      proxy.failAfter(0, 'silent');
      throw new Error('the work has failed');
    }),
  );
  await expect(work).rejects.toThrow();
  proxy.mend();
  expect((await ofAcme(() => pool.query(selectOne))).rows).toEqual(answer);
});

test('a connection whose server ends the statement in time is used again', async () => {
  const patient = createTenantPool(proxy.url, { reads: 2, writes: 2, own: 1 });
  const stop = new Stop();
  const pending = ofAcme(() => patient.query(forever), stop);
  await eventually(() => patient.pools[0]?.totalCount).toBe(1);
  await eventually(() => patient.pools[0]?.idleCount).toBe(0);
  stop.abort(new Error('the client has gone'));
  await expect(pending).rejects.toThrow('the client has gone');
  expect((await ofAcme(() => patient.query(selectOne))).rows).toEqual(answer);
  expect(patient.pools[0]?.totalCount).toBe(1);
  await patient.end();
});

describe('a statement of upkeep or of an export', () => {
  const ofExport = <Result>(work: () => Promise<Result>) =>
    doWork({ tenant: 'acme', stepLimit: Number.POSITIVE_INFINITY }, work);
  const ofUpkeep = <Result>(work: () => Promise<Result>) => work();
  const who = { upkeep: ofUpkeep, export: ofExport };
  const limits = { reads: 2, writes: 0, own: 1, statementLimit: Number.POSITIVE_INFINITY, silenceLimit: 200 };

  test.each(['upkeep', 'export'] as const)(
    'ends on a server that has become silent, and the place is free (%s)',
    async (name) => {
      const long = createTenantPool(proxy.url, { ...limits, maxSilence: 200 });
      expect((await who[name](() => long.query(selectOne))).rows).toEqual(answer);
      proxy.failAfter(0, 'silent');
      await expect(who[name](() => long.query(forever))).rejects.toThrow('the server is silent');
      proxy.mend();
      expect((await who[name](() => long.query(selectOne))).rows).toEqual(answer);
      await long.end();
    },
  );

  test.each(['', '?pooler=transaction'])(
    'continues for as long as the server is at work on it (%s)',
    async (pooler) => {
      const long = createTenantPool(proxy.url + pooler, limits);
      const pending = who.upkeep(() => long.query({ text: 'select 1 as one from pg_sleep(1)' }));
      expect((await pending).rows).toEqual(answer);
      await long.end();
    },
  );

  test.each(['', '?pooler=transaction'])(
    'ends where the server has answered and the answer is lost (%s)',
    async (pooler) => {
      const link = await startDatabaseProxy(database.url);
      const long = createTenantPool(link.url + pooler, limits);
      expect((await who.upkeep(() => long.query(selectOne))).rows).toEqual(answer);
      link.loseAnswers();
      await expect(who.upkeep(() => long.query(selectOne))).rejects.toThrow('the server is silent');
      await long.end();
      await link.close();
    },
  );
});

test.each(['cut', 'silent'] as const)(
  'a connection that is %s at any moment until its first answer counts as unreachable, and the next one is good',
  async (fault) => {
    // What a client sends: its start, the password where it has one, and the statement.
    const sent = new URL(database.url).password === '' ? 2 : 3;
    for (let pieces = 0; pieces < sent; pieces += 1) {
      // The end of another connection is a piece, too.
      const link = await startDatabaseProxy(database.url);
      const fresh = createPool(link.url, { maximum: 1, connectionLimit: 200, silenceLimit: 200 });
      link.failAfter(pieces, fault);
      expect(await fresh.query(selectOne).catch((error: unknown) => error)).toSatisfy(isUnreachable, `${pieces}`);
      link.mend();
      await eventually(async () => (await fresh.query(selectOne).catch(() => undefined))?.rows).toEqual(answer);
      await fresh.end();
      await link.close();
    }
  },
);
