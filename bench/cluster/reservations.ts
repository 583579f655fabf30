import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import type pg from 'pg';
import { createQuota } from '../../src/desk/completions/quota.ts';
import { createLogger } from '../../src/http/logger.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { distribute } from '../../src/postgres/migrate/distribute.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { callStart, reserveTokens } from '../../test/support/server/calls.ts';
import {
  clusterOfEnvironment,
  createClusterDatabase,
  onAllNodes,
  placementOf,
} from '../../test/support/server/cluster.ts';

// A worker is killed right after a reservation of tokens was acknowledged. After its restart no such reservation may be missing.
const { values: settings } = parseArgs({
  options: {
    kills: { type: 'string', default: '10' },
    /** Shell commands. HOST and PORT name the worker. */
    kill: { type: 'string' },
    start: { type: 'string' },
  },
});
const cluster = clusterOfEnvironment(process.env);
if (cluster === undefined || settings.kill === undefined || settings.start === undefined) {
  throw new Error('CITUS_DATABASE_URL, CITUS_WORKERS, --kill and --start are needed');
}
const name = `annals_bench_reservations_${process.pid}`;
const url = await createClusterDatabase(cluster, name);
const pool = createPool(url, { maximum: 4 });
pool.on('error', () => {});
await distribute(pool, { shards: 4 });
const db = createDatabase(pool);
const tenant = 'acme';
await createTenant(db, tenant);
const quota = createQuota({ pool, db, logger: createLogger('silent') });
let acknowledged = 0;
let missing = 0;
for (let kill = 1; kill <= Number(settings.kills); kill++) {
  const { host, port } = await placementOf(pool, tenant);
  // Ten at once, so that some are acknowledged with the same flush. The kill follows the first acknowledgement.
  const wanted = Array.from({ length: 10 }, () =>
    reserveTokens(quota, { tenant, call: callStart(), input: 10, output: 100, maxDuration: 3_600_000 }).then(
      async (reservation) => {
        if (await reservation.send()) acknowledged += 1;
      },
    ),
  );
  await Promise.any(wanted);
  await run(settings.kill, host, port);
  await Promise.allSettled(wanted);
  await run(settings.start, host, port);
  const stored = await untilServed(pool);
  missing = Math.max(missing, acknowledged - stored);
  process.stdout.write(`kill ${kill}: ${acknowledged} acknowledged, ${stored} stored\n`);
}
process.stdout.write(`${missing === 0 ? 'ok' : 'FAILED'}: ${missing} of ${acknowledged} are missing\n`);
await quota.close();
await db.destroy();
await onAllNodes(cluster, `drop database if exists ${name} with (force)`);

async function untilServed(on: pg.Pool): Promise<number> {
  for (;;) {
    try {
      const { rowCount } = await on.query('select from completion_reservation where tenant = $1 and sent', [tenant]);
      return rowCount ?? 0;
    } catch {
      await sleep(200);
    }
  }
}

async function run(command: string | undefined, host: string, port: number): Promise<void> {
  const env = { ...process.env, HOST: host, PORT: String(port) };
  await promisify(execFile)('sh', ['-c', command ?? ''], { env });
}
