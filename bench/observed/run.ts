import { parseArgs } from 'node:util';
import * as fc from 'fast-check';
import pg from 'pg';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { applicationArbitrary } from '../../test/support/oracle/application-arbitrary.ts';
import {
  counts,
  type ObservedWay,
  prepareObservedServer,
  runObservedLaw,
} from '../../test/support/server/observed-law.ts';

// Random applications, each in a database that Annals observes and in one that it does not. test/sources/observed-law.test.ts is the short form.
const { values: settings, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    minutes: { type: 'string', default: '60' },
    way: { type: 'string', multiple: true, default: ['triggers', 'capture'] },
  },
});
const [url] = positionals;
if (url === undefined) throw new Error('node bench/observed/run.ts URL-OF-A-SUPERUSER [--minutes 60]');

const begun = performance.now();
const minutes = () => (performance.now() - begun) / 60_000;
const name = `law_history_${settings.seed}`;
const administrator = new pg.Client(url);
await administrator.connect();
const { rows: versions } = await administrator.query('show server_version_num');
const version = Math.floor(Number(versions[0].server_version_num) / 10_000);
await administrator.query(`drop database if exists ${name} with (force)`);
await administrator.query(`create database ${name}`);
await prepareObservedServer({ url });
const pool = createPool(Object.assign(new URL(url), { pathname: name }).href);
pool.on('error', () => {});
let runs = 0;
let finds = 0;
try {
  await migrate(pool);
  const history = createDatabase(pool);
  await createTenant(history, 'acme');
  for (let seed = Number(settings.seed); minutes() < Number(settings.minutes); seed++) {
    for (const way of settings.way as ObservedWay[]) {
      // Capture's position is that of one source.
      await pool.query(`delete from capture_position`);
      let shrinkUntil = Number.POSITIVE_INFINITY;
      const law = fc.asyncProperty(applicationArbitrary(version, 30), async (random) => {
        if (performance.now() > shrinkUntil) throw new fc.PreconditionFailure(true);
        await pool.query(`delete from capture_position`);
        const faults = await runObservedLaw({ url, history, tenant: 'acme' }, random, way);
        runs += 1;
        if (faults.length === 0) return;
        shrinkUntil = Math.min(shrinkUntil, performance.now() + 60_000);
        throw new Error(faults.join('\n'));
      });
      const found = await fc.check(law, { seed, numRuns: 5 });
      if (!found.failed) continue;
      finds += 1;
      const [application] = found.counterexample ?? [];
      process.stdout.write(
        `${JSON.stringify({ way, version, seed, path: found.counterexamplePath, error: String(found.errorInstance), application }, null, 2)}\n`,
      );
    }
    process.stdout.write(`${JSON.stringify({ version, minutes: Math.round(minutes()), runs, finds, ...counts })}\n`);
  }
} finally {
  await pool.end();
  await administrator.query(`drop database if exists ${name} with (force)`);
  await administrator.end();
}
if (finds > 0) process.exitCode = 1;
