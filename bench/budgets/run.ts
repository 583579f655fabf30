import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createBudgets } from '../../src/desk/budgets/service.ts';
import { createQuota } from '../../src/desk/completions/quota.ts';
import { createLogger } from '../../src/http/logger.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { Random } from '../../test/support/oracle/random.ts';
import {
  author,
  makeRandomBudgets,
  overspent,
  priceOfBudgets,
  randomBudget,
} from '../../test/support/server/budgets.ts';
import { callStart, endedCall, reserveTokens, wrongSums } from '../../test/support/server/calls.ts';

// Budgets under load: 1,000 calls at once at a limit, then random calls of several processes, which are killed.
const { values: settings } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    budgets: { type: 'string', default: '200' },
    processes: { type: 'string', default: '3' },
    /** Calls at once of a process. */
    calls: { type: 'string', default: '16' },
  },
});
const folder = await mkdtemp(join(tmpdir(), 'annals-bench-budgets-'));
const database = await openEmbeddedDatabase({ dataDir: folder, log: () => {} });
const { url } = database;
const pool = createPool(url, { maximum: 12 });
await migrate(pool);
const db = createDatabase(pool);
const logger = createLogger('warn');
const random = new Random();
const budgets = createBudgets({
  db,
  documents: { page: () => Promise.reject(new Error('lists are of no use here')) },
  now: Date.now,
  keyCachesExpired: async () => {},
});

await thousandAtOnce();
await manyBudgets();
await pool.end();
await database.release();
await rm(folder, { recursive: true });

/** Each call has room of its own for at most so many; the rest is refused, or waits in vain. */
async function thousandAtOnce(): Promise<void> {
  const tenant = 'thousand';
  await createTenant(db, tenant);
  await budgets.put(author(tenant), 'tight', { period: 'day', limitUsd: '0.00009' });
  const quotas = [1, 2, 3].map(() => createQuota({ pool, db, logger, maxWait: 30_000 }));
  const began = performance.now();
  const outcomes = await Promise.all(
    Array.from({ length: 1_000 }, async (_, place) => {
      const call = callStart({ token: 'own', price: priceOfBudgets, clientId: `c${place % 50}` });
      const quota = quotas[place % 3];
      if (quota === undefined) throw new Error('there are three');
      const held = await reserveTokens(quota, { tenant, call, input: 0, output: 100, maxDuration: 60_000 }).catch(
        () => undefined,
      );
      if (held === undefined) return 'refused';
      await held.send();
      await held.settle(endedCall({ inputTokens: 0, outputTokens: random.below(101) }));
      return 'answered';
    }),
  );
  const { rows } = await pool.query(`select sum(cost)::text as spent from call_record where tenant = $1`, [tenant]);
  const answered = outcomes.filter((outcome) => outcome === 'answered').length;
  console.log(
    `1,000 at once: ${answered} answered, ${1_000 - answered} refused; spent ${rows[0].spent} of 90000000 pico-USD; ` +
      `overspent: ${(await overspent(pool, tenant)).length}, wrong sums: ${(await wrongSums(pool, tenant)).length}; ` +
      `${Math.round(performance.now() - began)} ms`,
  );
  for (const quota of quotas) await quota.close();
}

async function manyBudgets(): Promise<void> {
  const tenant = 'many';
  await createTenant(db, tenant);
  await budgets.put(author(tenant), 'all', { period: 'lifetime', limitTokens: 1_000_000_000 });
  await makeRandomBudgets(budgets, tenant, Number(settings.budgets) - 1, random);
  // Otherwise the budgets are used up after a minute.
  await pool.query(
    `update budget set limit_cost = limit_cost * 1000, limit_tokens = limit_tokens * 1000 where tenant = $1 and id <> 'all'`,
    [tenant],
  );
  const outcomes: Record<string, number> = {};
  let kills = 0;
  const start = (): ChildProcess => {
    const child = fork(join(import.meta.dirname, 'worker.ts'), [url, tenant, settings.calls]);
    child.on('message', (told: Record<string, number>) => {
      for (const [outcome, count] of Object.entries(told)) outcomes[outcome] = (outcomes[outcome] ?? 0) + count;
    });
    return child;
  };
  const children = Array.from({ length: Number(settings.processes) }, start);
  const end = Date.now() + Number(settings.minutes) * 60_000;
  const quota = createQuota({ pool, db, logger });
  for (let round = 0; Date.now() < end; round += 1) {
    await sleep(1_000);
    await pool.query(
      'update completion_reservation set expires_at = now() where tenant = $1 and not charged and random() < 0.2',
      [tenant],
    );
    await quota.state(tenant);
    const id = `b${random.below(Number(settings.budgets) - 1)}`;
    if (round % 3 === 0) await budgets.put(author(tenant), id, randomBudget(random, { limitTokens: 100_000_000 }));
    if (round % 3 === 1) await budgets.remove(author(tenant), id).catch(() => undefined);
    if (round % 5 === 4) {
      const place = random.below(children.length);
      children[place]?.kill('SIGKILL');
      children[place] = start();
      kills += 1;
    }
  }
  for (const child of children) child.kill('SIGKILL');
  await sleep(1_000);
  await pool.query('update completion_reservation set expires_at = now() where tenant = $1', [tenant]);
  await quota.state(tenant);
  await quota.close();
  const { rows } = await pool.query<{ deadlocks: number }>(
    'select deadlocks::integer from pg_stat_database where datname = current_database()',
  );
  const calls = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  console.log(
    `${settings.minutes} minutes, ${settings.budgets} budgets, ${settings.processes} processes, ${kills} kills: ${calls} calls`,
  );
  console.log(JSON.stringify(outcomes));
  console.log(
    `deadlocks: ${rows[0]?.deadlocks}; overspent: ${(await overspent(pool, tenant)).length}; ` +
      `wrong sums: ${(await wrongSums(pool, tenant)).length}`,
  );
}
