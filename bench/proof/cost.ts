import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { givePositions } from '../../src/history/feed/positions.ts';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { sealPortion } from '../../src/history/proof/sealing/seal-tenants.ts';
import { openSigner } from '../../src/history/proof/sealing/signer.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { startServer } from '../positions/server.ts';
import { databaseTime } from './processor-time.ts';

// What sealing costs an entry: processor time of this process and of the database's processes, and bytes on disk, by the
// number of changed paths. And the bytes where few entries come a minute.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '50000' },
    paths: { type: 'string', default: '1,8,16,32' },
    rounds: { type: 'string', default: '2000' },
  },
});
const now = () => 1_790_000_000_000;

const server = await startServer();
const folder = await mkdtemp(join(tmpdir(), 'annals-proof-'));
const pool = createPool(server.url, { maximum: 3 });
const db = createDatabase(pool);
try {
  await migrate(pool);
  makeProofKey(join(folder, 'key'));
  const signer = openSigner(join(folder, 'key'), 'annals.example');
  const sealing = { signer, now };
  const lines: string[] = [];
  for (const paths of settings.paths.split(',').map(Number)) {
    const tenant = `paths${paths}`;
    await createTenant(db, tenant);
    const count = Math.ceil(Number(settings.entries) / (paths > 8 ? 4 : 1));
    await record(tenant, count, paths);
    await givePositions(db, tenant);
    await pool.query('vacuum analyze');
    const before = { own: process.cpuUsage(), database: await used(), at: performance.now() };
    while (await sealPortion(db, tenant, sealing));
    const own = process.cpuUsage(before.own);
    const [node, database] = [own.user + own.system, (await used()) - before.database];
    const seconds = (performance.now() - before.at) / 1_000;
    const bytes = (await size()) / count;
    lines.push(
      `| ${paths} | ${count} | ${of(node, count)} | ${of(database, count)} | ${of(node + database, count)} | ${Math.round(count / seconds)} | ${bytes.toFixed(1)} |`,
    );
    process.stderr.write(`${lines.at(-1)}\n`);
    await pool.query('truncate proof_leaf, proof_tile');
  }
  process.stdout.write(
    `| Paths | Entries | Node, µs an entry | Database, µs | Together, µs | Entries a second | Bytes an entry |\n|---:|---:|---:|---:|---:|---:|---:|\n${lines.join('\n')}\n`,
  );
  const rounds = Number(settings.rounds);
  await createTenant(db, 'trickle');
  for (let round = 0; round < rounds; round += 1) {
    await record('trickle', 1 + (round % 3), 2, round * 10);
    await givePositions(db, 'trickle');
    await pool.query('update proof_log set signed_at = null');
    while (await sealPortion(db, 'trickle', sealing));
  }
  const entries = (await pool.query("select sum(octet_length(kinds)) as n from proof_leaf where tenant = 'trickle'"))
    .rows[0].n;
  const rows = (await pool.query("select count(*) as n from proof_leaf where tenant = 'trickle'")).rows[0].n;
  const atOnce = await size();
  await pool.query('vacuum full proof_leaf');
  process.stdout.write(
    `\n1 to 3 entries in each of ${rounds} rounds: ${entries} entries in ${rows} rows, ${(atOnce / entries).toFixed(1)} bytes an entry at the end, ${((await size()) / entries).toFixed(1)} after VACUUM FULL\n`,
  );
  signer.newest.close();
} finally {
  await pool.end();
  await server.stop();
  await rm(folder, { recursive: true });
}

function of(microseconds: number, count: number): string {
  return (microseconds / count).toFixed(0);
}

async function record(tenant: string, count: number, paths: number, from = 0): Promise<void> {
  const take = createRecorder(db, tenant, now);
  for (let done = 0; done < count; done += 2_000) {
    const length = Math.min(2_000, count - done);
    await take(
      Array.from({ length }, (_none, i) => {
        const members = Array.from(
          { length: paths },
          (_path, path) => `"address.field${path}":{"before":"old value ${i}","after":"new value ${path}"}`,
        );
        const n = from + done + i;
        return changeOf({ at: now() + n, entityId: `o-${n}`, name: `Order ${n}`, paths: `{${members.join(',')}}` });
      }),
    );
  }
}

async function size(): Promise<number> {
  const { rows } = await pool.query(
    "select pg_total_relation_size('proof_leaf') + pg_total_relation_size('proof_tile') as bytes",
  );
  return rows[0].bytes;
}

async function used(): Promise<number> {
  const { rows } = await pool.query('select pg_backend_pid() as pid');
  return await databaseTime(rows[0].pid);
}
