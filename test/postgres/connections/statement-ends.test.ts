import fc from 'fast-check';
import { expect, test } from 'vitest';
import { doWork } from '../../../src/core/fairness/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { createTenantPool } from '../../../src/postgres/connections/tenant-pool.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { startDatabaseProxy } from '../../support/server/database-proxy.ts';

const database = closeAfterAll(await createTestDatabase());

test('statements on few connections that are cancelled, late, wrong or good each have their own end', async () => {
  const few = createTenantPool(database.url, { reads: 4, writes: 0, own: 1 });
  const named = {
    name: 'ends',
    text: `select $1::int as number, n / $2::int as n, pg_sleep($3::float8)::text as slept from generate_series(1, 2) as n`,
  };
  const kind = fc.constantFrom('good', 'wrong', 'malformed', 'late', 'gone', 'gone at once');
  const calls = fc.array(
    fc.record({ kind, sleep: fc.integer({ min: 0, max: 4 }), tenant: fc.constantFrom('one', 'two') }),
    { minLength: 1, maxLength: 40 },
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
    const answer = doWork(options, () => few.query({ ...named, values }));
    if (what === 'gone') setTimeout(() => stop.abort(new Error('gone')), sleep);
    if (what === 'gone at once') stop.abort(new Error('gone'));
    return await answer.then(
      ({ rows }) => rows.map((row) => `${row.number}:${row.n}`).join(),
      (error: Error & { code?: string; type?: string }) => error.code ?? error.type ?? error.message,
    );
  };
  await fc.assert(
    fc.asyncProperty(calls, async (batch) => {
      const ends = await Promise.all(batch.map(call));
      for (const [number, { kind: what }] of batch.entries()) {
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

test('a connection that dies ends the statement under way, and the next one prepares again', async () => {
  const proxy = await startDatabaseProxy(database.url);
  const behind = createTenantPool(proxy.url, { reads: 2, writes: 0, own: 1, maxSilence: 2_000 });
  const statement = { name: 'dies', text: 'select $1::int as n', values: [1] };
  const ask = async () => (await doWork({ tenant: 'acme' }, () => behind.query(statement))).rows;
  for (const fault of ['cut', 'away'] as const) {
    for (let time = 0; time < 3; time++) expect(await ask()).toEqual([{ n: 1 }]);
    proxy.failAfter(0, fault);
    await expect(ask()).rejects.toThrow();
    proxy.mend();
    for (let time = 0; time < 3; time++) expect(await ask()).toEqual([{ n: 1 }]);
  }
  await behind.end();
  await proxy.close();
});
