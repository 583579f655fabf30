import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { amidOutages, type OutageReport } from '../../test/support/server/amid-outages.ts';
import { openWorld, type World } from './world.ts';

// What callers see while the database is restarted, and while it ends all connections, again and again.
const { values: settings } = parseArgs({ options: { times: { type: 'string', default: '20' } } });
const times = Number(settings.times);
// Milliseconds between two outages, in which the service has its usual load.
const restBetween = 1_000;

const world = await openWorld();
const service = await world.startService();
try {
  for (const [name, outage] of [
    ['restarts', () => restart(world)],
    ['pg_terminate_backend', () => terminate(world)],
  ] as const) {
    const tenant = name.replace(/[^a-z]/g, '');
    const client = await world.makeTenant(tenant);
    const pool = new pg.Pool({ connectionString: world.databaseUrl, max: 1 });
    pool.on('error', () => {});
    const report = await amidOutages({
      baseUrl: service.baseUrl,
      tenant,
      client,
      pool,
      times,
      outage: async () => {
        await sleep(restBetween);
        await outage();
      },
    });
    await pool.end();
    print(name, report);
  }
} finally {
  await service.stop();
  await world.close();
}

/** Stops the server as an operator does; the embedded database starts it again. Resolves once it takes connections. */
async function restart({ postmaster, databaseUrl }: World): Promise<void> {
  const stopped = await postmaster();
  process.kill(stopped, 'SIGINT');
  while ((await postmaster().catch(() => stopped)) === stopped) await sleep(20);
  for (;;) {
    const client = new pg.Client(databaseUrl);
    client.on('error', () => {});
    try {
      await client.connect();
      return;
    } catch {
      await sleep(20);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

async function terminate({ databaseUrl }: World): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name like 'annals%'`,
  );
  await client.end();
}

function print(name: string, { counts, dishonest, recoveries, acknowledged, lost }: OutageReport): void {
  const sorted = recoveries.toSorted((one, other) => one - other);
  console.log(`\n${times} × ${name}`);
  console.log(`  answers     ${JSON.stringify(counts)}`);
  console.log(`  dishonest   ${dishonest.length} ${[...new Set(dishonest)].slice(0, 5).join(' | ')}`);
  console.log(
    `  recovery    median ${sorted[sorted.length >> 1]?.toFixed(0)} ms, worst ${sorted.at(-1)?.toFixed(0)} ms`,
  );
  console.log(`  acknowledged ${acknowledged}, lost ${lost.length}`);
}
