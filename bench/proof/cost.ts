import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { sealPortion } from '../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../src/proof/log/signer.ts';
import { givePositions } from '../../src/recording/positions.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { printTable } from '../figures.ts';
import { parentOf, serverTime } from '../processor-time.ts';
import { openBenchServer } from '../server.ts';

// What sealing costs an entry: processor time of this process and of the database's processes, and bytes on disk, by
// the number of changed paths. And the bytes where few entries come a minute.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '50000' },
    paths: { type: 'string', default: '1,8,16,32' },
    rounds: { type: 'string', default: '2000' },
  },
});
const now = () => 1_790_000_000_000;

const server = await openBenchServer();
const { pool, db, drop } = await server.create();
const folder = await mkdtemp(join(tmpdir(), 'annals-proof-'));
try {
  makeProofKey(join(folder, 'key'));
  const signer = openSigner(join(folder, 'key'), 'annals.example');
  const sealing = { signer, now };
  const rows: string[][] = [];
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
    const of = (microseconds: number) => (microseconds / count).toFixed(0);
    const perSecond = Math.round(count / seconds);
    rows.push([`${paths}`, `${count}`, of(node), of(database), of(node + database), `${perSecond}`, bytes.toFixed(1)]);
    await pool.query('truncate proof_leaf, proof_tile');
  }
  printTable(
    ['Paths', 'Entries', 'Node, µs an entry', 'Database, µs', 'Together, µs', 'Entries a second', 'Bytes an entry'],
    rows,
  );
  const rounds = Number(settings.rounds);
  await createTenant(db, 'trickle');
  for (let round = 0; round < rounds; round += 1) {
    await record('trickle', 1 + (round % 3), 2, round * 10);
    await givePositions(db, 'trickle');
    await pool.query('update proof_log set signed_at = null');
    while (await sealPortion(db, 'trickle', sealing));
  }
  const trickle = await pool.query(
    "select sum(octet_length(kinds)) as entries, count(*) as rows from proof_leaf where tenant = 'trickle'",
  );
  const { entries, rows: leafRows } = trickle.rows[0];
  const atOnce = await size();
  await pool.query('vacuum full proof_leaf');
  const each = (bytes: number) => (bytes / entries).toFixed(1);
  process.stdout.write(
    `\n1 to 3 entries in each of ${rounds} rounds: ${entries} entries in ${leafRows} rows, ${each(atOnce)} bytes an entry, ${each(await size())} after VACUUM FULL\n`,
  );
  signer.newest.close();
} finally {
  await drop();
  await server.release();
  await rm(folder, { recursive: true });
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

/** Microseconds of all processes of the database. */
async function used(): Promise<number> {
  const { rows } = await pool.query('select pg_backend_pid() as pid');
  return 1000 * serverTime(parentOf(rows[0].pid));
}
