import { parseArgs } from 'node:util';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { runPositionLaw } from '../../test/support/server/position-law.ts';
import { startServer } from './server.ts';

// Positions under recorders, imports and processes that give positions, which are killed with SIGKILL again and again, and so is
// the database. test/history/positions/position-law.test.ts is the short form.
const { values: settings } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    recorders: { type: 'string', default: '8' },
    transactions: { type: 'string', default: '400' },
    imports: { type: 'string', default: '100000,100000' },
    kills: { type: 'string', default: '60' },
    databaseEvery: { type: 'string', default: '12' },
  },
});

const tenant = 'acme';
const server = await startServer();
const pool = createPool(server.url, { maximum: 5 });
pool.on('error', () => {});
const begun = performance.now();
try {
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  let databaseKills = 0;
  const outcome = await runPositionLaw({
    url: server.url,
    db,
    tenant,
    seed: Number(settings.seed),
    recorders: Number(settings.recorders),
    transactions: Number(settings.transactions),
    maxDelay: 100,
    maxChanges: 20,
    imports: settings.imports.split(',').map(Number),
    kills: Number(settings.kills),
    onKill: async (kills) => {
      if (kills % Number(settings.databaseEvery) !== 0) return;
      await server.kill();
      databaseKills += 1;
    },
  });
  const seconds = Math.round((performance.now() - begun) / 1_000);
  process.stdout.write(`${JSON.stringify({ seed: settings.seed, seconds, databaseKills, ...outcome })}\n`);
  if (outcome.faults.length > 0) process.exitCode = 1;
} finally {
  await pool.end();
  await server.stop();
}
