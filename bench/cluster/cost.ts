import { parseArgs } from 'node:util';
import pg from 'pg';
import { createFindPage } from '../../src/history/search/find-page.ts';
import { DictionaryCache } from '../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { distribute } from '../../src/postgres/migrate/distribute.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import {
  clusterOfEnvironment,
  createClusterDatabase,
  onAllNodes,
  type TestCluster,
  urlsOfNodes,
} from '../../test/support/server/cluster.ts';
import { printTable } from '../figures.ts';
import { processTime } from '../processor-time.ts';
import { onServer } from '../server.ts';

// The same work in a database of the coordinator that is not distributed and in one that is. Compares the processor
// time of all database processes, which run on this machine.
const { values: settings } = parseArgs({
  options: { entries: { type: 'string', default: '20000' }, rounds: { type: 'string', default: '5' } },
});
const environment = clusterOfEnvironment(process.env);
if (environment === undefined) throw new Error('CITUS_DATABASE_URL and CITUS_WORKERS must name a cluster');
const cluster: TestCluster = environment;
const entries = Number(settings.entries);
const now = Date.UTC(2026, 8, 15);
const tenant = 'acme';

interface Side {
  findPage: (q: string) => Promise<unknown>;
  record: (count: number) => Promise<unknown>;
  fold: () => Promise<unknown>;
  run: (statement: string) => Promise<unknown>;
  /** Milliseconds of processor time that the database's processes have taken so far. */
  spent: () => Promise<number>;
  close: () => Promise<void>;
}

// The floor: what any call costs that goes to a worker.
const nothing = `create function bench_nothing(of_tenant text) returns integer language plpgsql stable as 'begin return 1; end'`;
const newestEntry = 'select at from change_entry where tenant = $1 and at >= 5 order by at desc, sequence desc limit 1';

const regexes = new RegexMatcherPool();
const sides: [name: string, side: Side][] = [];
const database = `annals_bench_cost_${process.pid}`;
const [coordinator = ''] = urlsOfNodes(cluster);
try {
  const plain = `${database}_one`;
  await onServer(coordinator, `create database ${plain} template template0`);
  const [plainUrl = ''] = urlsOfNodes(cluster, plain);
  sides.push(['one server', await open(plainUrl, [plainUrl])]);
  await onServer(plainUrl, nothing);
  const url = await createClusterDatabase(cluster, database);
  const pool = createPool(url, { maximum: 2 });
  await distribute(pool, { shards: 4 });
  await pool.end();
  await onServer(url, nothing);
  await onServer(
    url,
    "select create_distributed_function('bench_nothing(text)', 'of_tenant', colocate_with => 'tenant', force_delegation => true)",
  );
  sides.push(['cluster', await open(url, urlsOfNodes(cluster, database))]);

  const names = Array.from({ length: 100 }, (_none, n) => `a${n * 3}`).join(', ');
  const cases: [name: string, calls: number, work: (side: Side) => Promise<unknown>][] = [
    ['a routine that does nothing', 50, ({ run }) => run('select bench_nothing($1)')],
    ['one entry by its index', 50, ({ run }) => run(newestEntry)],
    ['page, no filter', 20, ({ findPage }) => findPage('')],
    ['page of an entity', 20, ({ findPage }) => findPage('entity:e1')],
    ['page of a document', 20, ({ findPage }) => findPage('entity:e1 entityId:d7')],
    ['page of 2 actors', 20, ({ findPage }) => findPage('actor:(a1, a2)')],
    ['page of 100 actors', 10, ({ findPage }) => findPage(`actor:(${names})`)],
    ['page of a pattern of ids', 10, ({ findPage }) => findPage('entity:e1 entityId:~7$')],
    ['one change alone', 20, ({ record }) => record(1)],
    ['a batch of 100', 5, ({ record }) => record(100)],
    ['a batch of 2,000', 1, ({ record }) => record(2_000)],
  ];
  const sums = new Map<string, number>();
  for (let round = -1; round < Number(settings.rounds); round++) {
    // Pages read what is folded, as most of a history is.
    for (const [, side] of sides) await side.fold();
    for (const [name, calls, work] of cases) {
      for (const [side, of] of sides) {
        const before = await of.spent();
        for (let call = 0; call < calls; call++) await work(of);
        const spent = ((await of.spent()) - before) / calls;
        // The first round fills caches.
        if (round >= 0) sums.set(`${name} ${side}`, (sums.get(`${name} ${side}`) ?? 0) + spent);
      }
    }
  }
  const rounds = Number(settings.rounds);
  printTable(
    ['', 'one server, ms', 'cluster, ms', 'factor'],
    cases.map(([name]) => {
      const [one = 0, distributed = 0] = sides.map(([side]) => (sums.get(`${name} ${side}`) ?? 0) / rounds);
      return [name, one.toFixed(2), distributed.toFixed(2), (distributed / one).toFixed(1)];
    }),
  );
} finally {
  for (const [, side] of sides) await side.close();
  await onServer(coordinator, `drop database if exists ${database}_one with (force)`);
  await onAllNodes(cluster, `drop database if exists ${database} with (force)`);
}

/** Opens a database, with a history of so many entries. One connection serves all calls. */
async function open(url: string, nodes: readonly string[]): Promise<Side> {
  const pool = createPool(url, { maximum: 3 });
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  const recorder = createRecorder(db, tenant, () => now);
  let recorded = 0;
  const record = async (count: number) => {
    const changes = Array.from({ length: count }, (_none, index) => changeOf(recorded + index));
    recorded += count;
    await recorder(changes);
  };
  const watches = nodes.map((node) => new pg.Client(node));
  for (const watch of watches) await watch.connect();
  const spent = async () => {
    const others = 'select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()';
    const found = await Promise.all(watches.map((watch) => watch.query<{ pid: number }>(others)));
    return found.flatMap(({ rows }) => rows).reduce((sum, { pid }) => sum + processTime(pid), 0);
  };
  const start = await spent();
  while (recorded < entries) await record(2_000);
  await foldHistory(db, tenant);
  const importing = ((await spent()) - start) / entries;
  process.stderr.write(`${new URL(url).pathname}: ${importing.toFixed(3)} ms an entry, recorded and folded\n`);
  for (const watch of watches) await watch.query('vacuum analyze');
  const findPage = createFindPage({ pool, db, regexes, now: () => now, dictionaries: new DictionaryCache(pool) });
  return {
    findPage: (q) => findPage(tenant, parseQuery(q, changelogDialect), { skip: 0, size: 20 }),
    record,
    fold: () => foldHistory(db, tenant),
    run: (text) => pool.query({ name: text.slice(0, 40), text, values: [tenant] }),
    spent,
    async close() {
      for (const watch of watches) await watch.end();
      await db.destroy();
    },
  };
}

function changeOf(n: number): Change {
  return {
    at: now - 1_000 - (n % 977) * 3_600_000 - Math.floor(n / 7),
    type: (['create', 'update', 'delete'] as const)[n % 3] ?? 'update',
    entity: `e${n % 4}`,
    entityId: `d${n % 500}`,
    actor: `a${n % 401}`,
    related: [],
    paths: JSON.stringify({ '/a': { before: n, after: n + 1 } }),
    identity: Buffer.from(`${n}`.padEnd(16, '.').slice(0, 16)),
  };
}
