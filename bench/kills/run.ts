import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { makeProofKey } from '../../src/proof/log/signer.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { runPositionLaw } from '../../test/support/server/position-law.ts';
import { runSealingLaw } from '../../test/support/server/sealing-law.ts';
import { benchFolder, openBenchServer } from '../server.ts';

// The laws of positions and of sealing while processes are killed with SIGKILL at random moments, and the database as
// well. The tests position-law.test.ts and sealing.test.ts run the same laws, without kills of the database.
const { values: settings, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    kills: { type: 'string', default: '60' },
    /** The database is killed with every so many kills. */
    databaseEvery: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    /** Of each recorder. */
    transactions: { type: 'string', default: '400' },
  },
});
const law = positionals[0] ?? 'positions';
const seed = Number(settings.seed);
const kills = Number(settings.kills);
const tenant = 'acme';

const server = await openBenchServer(`${benchFolder}-kills`);
const { url, db, drop } = await server.create();
const folder = await mkdtemp(join(tmpdir(), 'annals-kills-'));
const begun = performance.now();
try {
  await createTenant(db, tenant);
  const keyFile = join(folder, 'proof.key');
  makeProofKey(keyFile);
  const onKill = async (killed: number) => {
    if (killed % Number(settings.databaseEvery) === 0) await server.kill();
  };
  const transactions = Number(settings.transactions);
  const limits = { recorders: 8, transactions, maxDelay: 100, maxChanges: 20, imports: [100_000, 100_000] };
  const outcome =
    law === 'sealing'
      ? await runSealingLaw({ url, db, tenant, keyFile, kills, random: new Random(seed), onKill })
      : await runPositionLaw({ url, db, tenant, seed, ...limits, kills, onKill });
  const seconds = Math.round((performance.now() - begun) / 1_000);
  process.stdout.write(`${JSON.stringify({ law, seed, seconds, kills, ...outcome })}\n`);
  if (outcome.faults.length > 0) process.exitCode = 1;
} finally {
  await drop();
  await server.release();
  await rm(folder, { recursive: true });
}
