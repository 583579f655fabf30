import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { CompiledQuery } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { eventually } from '../../support/server/patience.ts';

const applicationName = 'tenant pool';
const forever = { text: 'select pg_sleep(600)' };
const soon = { text: 'select 1 as answer' };

const database = await createTestDatabase();
const pool = createTenantPool(database.url, { applicationName, reads: 4, writes: 2, own: 2 });
await database.pool.query('create table noted (what text)');

afterAll(async () => {
  await pool.end();
  await database.drop();
});

/** Statements that run, and transactions that are open. */
async function busy(): Promise<number> {
  const { rows } = await database.pool.query<{ busy: number }>(
    "select count(*) as busy from pg_stat_activity where application_name = $1 and state <> 'idle' and leader_pid is null",
    [applicationName],
  );
  return rows[0]?.busy ?? 0;
}

/** Lets a tenant run so many statements that do not end by themselves; they end with the signal. */
function occupy(
  tenant: string,
  count: number,
  writes: boolean,
  { of = pool, ofViewers = false } = {},
): { stop: Stop; ended: Promise<unknown> } {
  const stop = new Stop();
  const ask = () => doWork({ tenant, writes, ofViewers, signal: stop }, () => of.query(forever));
  return { stop, ended: Promise.allSettled(Array.from({ length: count }, ask)) };
}

describe('what is aborted', () => {
  test('a statement is cancelled in the database, and its connection is used again', async () => {
    const stop = new Stop();
    const pending = doWork({ tenant: 'acme', signal: stop }, () => pool.query(forever));
    await eventually(busy).toBe(1);
    stop.abort(new Error('the client has gone'));
    await expect(pending).rejects.toThrow('the client has gone');
    await eventually(busy).toBe(0);
    const connections = pool.pools.map(({ totalCount }) => totalCount);
    expect((await doWork({ tenant: 'acme' }, () => pool.query(soon))).rows).toEqual([{ answer: 1 }]);
    expect(pool.pools.map(({ totalCount }) => totalCount)).toEqual(connections);
  });

  test('a transaction is rolled back, whatever it waits for', async () => {
    const db = createDatabase(pool);
    for (const statement of [forever.text, undefined]) {
      const stop = new Stop();
      const begun = Promise.withResolvers<void>();
      const work = doWork({ tenant: 'acme', writes: true, signal: stop }, () =>
        inTransaction(db, async (transaction) => {
          await transaction.executeQuery(CompiledQuery.raw("insert into noted values ('lost')"));
          begun.resolve();
          if (statement !== undefined) await transaction.executeQuery(CompiledQuery.raw(statement));
          // Between two statements: the next one, be it the commit, is refused.
          else await eventually(() => stop.aborted).toBe(true);
        }),
      );
      await begun.promise;
      stop.abort(new Error('the client has gone'));
      await expect(work).rejects.toThrow('the client has gone');
      await eventually(busy).toBe(0);
    }
    expect((await database.pool.query('select from noted')).rowCount).toBe(0);
  });

  test('a caller that waits for a connection gives up, with 503 where its time is over', async () => {
    const { stop, ended } = occupy('acme', 2, false);
    await eventually(busy).toBe(2);
    const gone = new Stop();
    const waiting = doWork({ tenant: 'acme', signal: gone }, () => pool.query(soon));
    gone.abort(new Error('the client has gone'));
    await expect(waiting).rejects.toThrow('the client has gone');
    const late = doWork({ tenant: 'acme', timeLimit: 100 }, () => pool.query(soon));
    await expect(late).rejects.toMatchObject({ type: 'service_unavailable' });
    stop.abort(new Error('enough'));
    await ended;
    await eventually(busy).toBe(0);
  });

  test('nothing else that runs on the same connections is hit', async () => {
    const failed: unknown[] = [];
    let aborted = 0;
    const patient = Array.from({ length: 3 }, async () => {
      for (let round = 0; round < 150; round++) {
        await doWork({ tenant: 'bystander' }, () => pool.query({ text: 'select pg_sleep(0.001)' })).catch((error) =>
          failed.push(error),
        );
      }
    });
    const impatient = Array.from({ length: 3 }, async () => {
      for (let round = 0; round < 100; round++) {
        const stop = new Stop();
        const pending = doWork({ tenant: 'acme', signal: stop }, () => pool.query({ text: 'select pg_sleep(0.002)' }));
        setTimeout(() => stop.abort(new Error('gone')), round % 4);
        await pending.catch((error: Error) => {
          aborted += 1;
          if (error.message !== 'gone') failed.push(error);
        });
      }
    });
    await Promise.all([...patient, ...impatient]);
    expect(failed).toEqual([]);
    expect(aborted).toBeGreaterThan(10);
  });

  test('a step that lasts too long is cancelled with 503 by itself', async () => {
    const work = doWork({ tenant: 'acme', stepLimit: 500 }, async () => {
      await sleep(800);
      expect((await pool.query(soon)).rows).toEqual([{ answer: 1 }]);
      await pool.query(forever);
    });
    await expect(work).rejects.toMatchObject({ type: 'service_unavailable' });
    await eventually(busy).toBe(0);
  });
});

describe('shares', () => {
  test.each([
    { kind: 'reading', writes: false, share: 2 },
    { kind: 'writing', writes: true, share: 1 },
  ])('of the connections for $kind a tenant has half, and another one begins at once', async ({ writes, share }) => {
    const { stop, ended } = occupy('acme', 10, writes);
    await eventually(busy).toBe(share);
    const bystander = doWork({ tenant: 'bystander', writes }, () => pool.query(soon));
    expect((await bystander).rows).toEqual([{ answer: 1 }]);
    expect(await busy()).toBe(share);
    stop.abort(new Error('enough'));
    await ended;
    await eventually(busy).toBe(0);
  });

  test('what a tenant reads does not wait for what it writes, nor the other way round', async () => {
    for (const writes of [true, false]) {
      const { stop, ended } = occupy('acme', 10, writes);
      await eventually(busy).toBeGreaterThan(0);
      const opposite = doWork({ tenant: 'acme', writes: !writes }, () => pool.query(soon));
      expect((await opposite).rows).toEqual([{ answer: 1 }]);
      stop.abort(new Error('enough'));
      await ended;
    }
  });

  describe('beside a write', () => {
    let inUse = 0;
    let maximum = 0;
    const count = (change: number) => () => {
      inUse += change;
      maximum = Math.max(maximum, inUse);
    };

    /** The maximum connections at once while a tenant reads a lot, all of it quick. */
    async function maxWhileReading(): Promise<number> {
      maximum = inUse;
      const quick = () => doWork({ tenant: 'acme' }, () => pool.query({ text: 'select pg_sleep(0.002)' }));
      await Promise.all(Array.from({ length: 10 }, quick));
      return maximum;
    }

    beforeAll(async () => {
      const [shared] = pool.pools;
      // A connection that was released in this turn of the event loop goes back to its pool at the end of it.
      await nextTurn();
      shared?.on('acquire', count(1));
      shared?.on('release', count(-1));
    });

    test('quick reads of a tenant begin one after another, which they do not without one', async () => {
      await eventually(maxWhileReading).toBe(2);
      const { stop, ended } = occupy('writer', 1, true);
      await eventually(busy).toBe(1);
      // The write and one read.
      await eventually(maxWhileReading).toBe(2);
      stop.abort(new Error('enough'));
      await ended;
    });

    test('slow reads keep no other tenant waiting', async () => {
      const occupied = [occupy('writer', 1, true), occupy('acme', 1, false), occupy('rival', 1, false)];
      await eventually(busy).toBe(3);
      const bystander = doWork({ tenant: 'bystander', timeLimit: 10_000 }, () => pool.query(soon));
      expect((await bystander).rows).toEqual([{ answer: 1 }]);
      for (const { stop } of occupied) stop.abort(new Error('enough'));
      await Promise.all(occupied.map(({ ended }) => ended));
      await eventually(busy).toBe(0);
    });
  });

  test('what the process does by itself has connections that no tenant can take', async () => {
    const tenants = ['a', 'b', 'c', 'd', 'e', 'f'];
    const occupied = tenants.flatMap((tenant) => [occupy(tenant, 5, false), occupy(tenant, 5, true)]);
    await eventually(busy).toBe(6);
    expect((await pool.query(soon)).rows).toEqual([{ answer: 1 }]);
    for (const { stop } of occupied) stop.abort(new Error('enough'));
    await Promise.all(occupied.map(({ ended }) => ended));
    await eventually(busy).toBe(0);
  });
});

test('the database ends what a dead process left of a tenant, and lets the process itself take its time', async () => {
  const limits = { text: "select current_setting('statement_timeout') as statement" };
  expect((await doWork({ tenant: 'acme' }, () => pool.query(limits))).rows).toEqual([{ statement: '35s' }]);
  expect((await pool.query(limits)).rows).toEqual([{ statement: '0' }]);
});

test('a connection that was lost is not used again', async () => {
  const pending = doWork({ tenant: 'acme' }, () => pool.query(forever));
  const outcome = expect(pending).rejects.toThrow(/terminat/i);
  await eventually(busy).toBe(1);
  await database.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1 and state = 'active'",
    [applicationName],
  );
  await outcome;
  for (let round = 0; round < 5; round++) {
    expect((await doWork({ tenant: 'acme' }, () => pool.query(soon))).rows).toEqual([{ answer: 1 }]);
  }
});

test('a statement that is wrong costs no connection', async () => {
  const backend = async () =>
    (await doWork({ tenant: 'acme' }, () => pool.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })))
      .rows[0]?.pid;
  const before = await backend();
  await expect(doWork({ tenant: 'acme' }, () => pool.query({ text: 'select nothing' }))).rejects.toThrow('nothing');
  expect(await backend()).toBe(before);
});

test('those who look at a part of a history have half of the connections of their tenant: its own statements do not wait behind theirs', async () => {
  const whole = createTenantPool(database.url, { applicationName, reads: 8, writes: 2, own: 2 });
  const { stop, ended } = occupy('acme', 10, false, { of: whole, ofViewers: true });
  await eventually(busy).toBe(2);
  const own = occupy('acme', 2, false, { of: whole });
  await eventually(busy).toBe(4);
  for (const running of [{ stop, ended }, own]) {
    running.stop.abort(new Error('enough'));
    await running.ended;
  }
  await whole.end();
});
