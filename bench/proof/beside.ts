import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { startServer } from '../positions/server.ts';
import { processorTime } from './processor-time.ts';

// What recording costs while its history is sealed, and while it is not: processor time of the recorder and of its connection, an
// entry, in rounds in turn. Positions are given and entries folded in both.
const { values: settings } = parseArgs({
  options: { rounds: { type: 'string', default: '8' }, entries: { type: 'string', default: '20000' } },
});
const support = join(import.meta.dirname, '..', '..', 'test', 'support', 'server');
const entries = Number(settings.entries);

const server = await startServer();
const folder = await mkdtemp(join(tmpdir(), 'annals-proof-'));
const pool = createPool(server.url, { maximum: 1 });
const db = createDatabase(pool);
try {
  await migrate(pool);
  const keyFile = join(folder, 'proof.key');
  makeProofKey(keyFile);
  const { rows } = await pool.query('select pg_backend_pid() as pid');
  const ratios: Record<string, number[]> = { batches: [], 'one by one': [] };
  for (let round = 0; round < Number(settings.rounds); round += 1) {
    for (const [what, size] of [
      ['batches', 2_000],
      ['one by one', 1],
    ] as const) {
      const count = size === 1 ? entries / 10 : entries;
      const costs: number[] = [];
      for (const isSealed of round % 2 === 0 ? [false, true] : [true, false]) {
        const tenant = `t${round}${isSealed ? 'sealed' : 'plain'}${size}`;
        await createTenant(db, tenant);
        const scripts = [['position-giver.ts'], ...(isSealed ? [['sealer-process.ts', keyFile]] : [])];
        const others = scripts.map(([script = '', ...args]) =>
          spawn(process.execPath, [join(support, script), server.url, tenant, ...args], { stdio: 'ignore' }),
        );
        const take = createRecorder(db, tenant, () => Date.now());
        await take([changeOf({ at: Date.now() })]);
        const before = await processorTime(rows[0].pid);
        for (let done = 0; done < count; done += size) {
          await take(
            Array.from({ length: size }, (_none, i) => changeOf({ at: Date.now() + i, paths: eightPaths(i) })),
          );
        }
        const cost = ((await processorTime(rows[0].pid)) - before) / count;
        costs[isSealed ? 1 : 0] = cost;
        for (const other of others) {
          const ended = once(other, 'exit');
          other.kill('SIGKILL');
          await ended;
        }
      }
      const [plain = 0, sealed = 0] = costs;
      ratios[what]?.push(sealed / plain);
      process.stderr.write(`${what}: ${plain.toFixed(0)} µs an entry, sealed ${sealed.toFixed(0)}\n`);
    }
  }
  for (const [what, all] of Object.entries(ratios)) {
    const sorted = all.toSorted((one, other) => one - other).map((ratio) => ratio.toFixed(2));
    process.stdout.write(`${what}: sealed / not sealed ${sorted.join(' ')}\n`);
  }
} finally {
  await pool.end();
  await server.stop();
  await rm(folder, { recursive: true });
}

function eightPaths(n: number): string {
  const members = Array.from({ length: 8 }, (_none, i) => `"field${i}":{"before":"old ${n}","after":"new ${i}"}`);
  return `{${members.join(',')}}`;
}
