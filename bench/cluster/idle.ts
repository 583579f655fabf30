import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { distribute } from '../../src/postgres/migrate/distribute.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import {
  clusterOfEnvironment,
  createClusterDatabase,
  onAllNodes,
  type TestCluster,
  urlsOfNodes,
} from '../../test/support/server/cluster.ts';
import { type ServiceProcesses, startServices } from '../../test/support/server/service-processes.ts';
import { postmasterOf, serverMilliseconds } from '../history/size/measures.ts';

// What a service takes of the database's processors that nobody sends a request to: cores, of each server. With --one the database
// is one of the coordinator alone, as on one server. All servers run on this machine.
const { values: settings } = parseArgs({
  options: {
    one: { type: 'boolean', default: false },
    shards: { type: 'string', default: '32' },
    tenants: { type: 'string', default: '100' },
    processes: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '30' },
  },
});
const found = clusterOfEnvironment(process.env);
if (found === undefined) throw new Error('CITUS_DATABASE_URL and CITUS_WORKERS must name a cluster');
const cluster: TestCluster = found;
const name = `annals_bench_idle_${process.pid}`;
const key = Buffer.alloc(32, 7).toString('base64');

// Rows of work that is done stand in the tables.
const rows = [
  `insert into tenant (tenant) select 'tenant' || n from generate_series(1, ${Number(settings.tenants)}) n`,
  `insert into job (tenant, id, type, status, document, fields, input)
     select tenant, 'done', 'EXPORT', 'success', '{}', '{}', '{}' from tenant`,
  `insert into mail (tenant, message_id, recipient, subject, content, sent_at)
     select tenant, '<done>', 'jane@shop.example', 's', 't', now() from tenant`,
  `insert into change_delta (tenant, ats, kinds, actors) select tenant, '{1}', '{1}', '{1}' from tenant`,
  'delete from change_delta',
];

const url = settings.one ? await oneDatabase() : await createClusterDatabase(cluster, name);
let services: ServiceProcesses | undefined;
try {
  const pool = createPool(url, { maximum: 3 });
  if (settings.one) await migrate(pool);
  else await distribute(pool, { shards: Number(settings.shards) });
  for (const statement of rows) await pool.query(statement);
  await pool.end();
  services = await startServices(Number(settings.processes), { DATABASE_URL: url, ANNALS_SECRET_KEY: key });
  // What a start does once has ended by then.
  await sleep(20_000);
  const seconds = Number(settings.seconds);
  const nodes = settings.one ? [url] : urlsOfNodes(cluster, name);
  const postmasters = await Promise.all(nodes.map(postmaster));
  const before = postmasters.map(serverMilliseconds);
  await sleep(seconds * 1_000);
  const cores = postmasters.map((id, index) => (serverMilliseconds(id) - (before[index] ?? 0)) / 1_000 / seconds);
  process.stdout.write(
    `${settings.one ? 'one server' : `${settings.shards} portions`}, ${settings.tenants} tenants, ${settings.processes} processes: ` +
      `${cores.map((one) => one.toFixed(4)).join(', ')} cores (coordinator first)\n`,
  );
} finally {
  await services?.end();
  if (settings.one) await onAllNodes({ ...cluster, workers: [] }, `drop database if exists ${name} with (force)`);
  else await onAllNodes(cluster, `drop database if exists ${name} with (force)`);
}

async function oneDatabase(): Promise<string> {
  await onAllNodes({ ...cluster, workers: [] }, `create database ${name} template template0`);
  return urlsOfNodes(cluster, name)[0] ?? '';
}

async function postmaster(of: string): Promise<number> {
  const pool = createPool(of, { maximum: 1 });
  const id = await postmasterOf(pool);
  await pool.end();
  return id;
}
