import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { runSealingLaw } from '../../test/support/server/sealing-law.ts';
import { startServer } from '../positions/server.ts';

// Processes with one key that seal a growing history are killed with SIGKILL again and again, and so is the database.
// test/history/proof/sealing.test.ts has the short form.
const { values: settings } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    kills: { type: 'string', default: '100' },
    databaseEvery: { type: 'string', default: '10' },
  },
});

const server = await startServer();
const folder = await mkdtemp(join(tmpdir(), 'annals-proof-'));
const pool = createPool(server.url, { maximum: 5 });
pool.on('error', () => {});
const begun = performance.now();
try {
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, 'acme');
  const keyFile = join(folder, 'proof.key');
  makeProofKey(keyFile);
  const kills = Number(settings.kills);
  const outcome = await runSealingLaw({
    ...{ url: server.url, db, tenant: 'acme', keyFile, kills },
    random: new Random(Number(settings.seed)),
    onKill: async (killed) => {
      if (killed % Number(settings.databaseEvery) === 0) await server.kill();
    },
  });
  const seconds = Math.round((performance.now() - begun) / 1_000);
  process.stdout.write(`${JSON.stringify({ seed: settings.seed, seconds, kills, ...outcome })}\n`);
  if (outcome.faults.length > 0) process.exitCode = 1;
} finally {
  await pool.end();
  await server.stop();
  await rm(folder, { recursive: true });
}
