import { parseArgs } from 'node:util';
import pg from 'pg';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { median, printTable } from '../figures.ts';
import { processTime } from '../processor-time.ts';
import { openBenchServer, urlOf } from '../server.ts';
import { environmentOf, type Service, startService, tokenOf } from '../service.ts';
import { benchNow, openBenchDatabase } from './data.ts';
import { type Part, type QuestionClass, questionClasses } from './questions.ts';

// The processor time of queries over HTTP beside that of plain SQL with its best indexes. No question repeats.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '3750000' },
    /** `imported`: as an import leaves the tables. `analysed`: vacuumed and analysed. */
    state: { type: 'string', default: 'analysed' },
    /** Questions of a class that count, for each part. */
    variants: { type: 'string', default: '5' },
    /** Classes with one of these texts in their name. */
    row: { type: 'string', multiple: true },
    /** One question of each class, without warm-up: a server that has just started has empty caches. */
    cold: { type: 'boolean', default: false },
    /** Makes the data and measures nothing. */
    prepare: { type: 'boolean', default: false },
  },
});
const { cold } = settings;
const state = settings.state === 'imported' ? 'imported' : 'analysed';
const variants = cold ? 1 : Number(settings.variants);
const size = 20;
const tenant = 'big';

/** Milliseconds: of processors, and of the clock. */
interface Cost {
  processor: number;
  clock: number;
}

interface Line {
  row: string;
  part: Part;
  matches: number;
  annals: Cost[];
  plain: Cost[];
}

const server = await openBenchServer();
try {
  const source = await openBenchDatabase(server, Number(settings.entries), state);
  if (!settings.prepare) {
    // The service analyses what needs it: the next run has to find the tables as the import left them.
    const copy = state === 'imported' ? await server.create({ template: source, connections: 2 }) : undefined;
    await measureAll(copy?.url ?? urlOf(server.url, source));
    await copy?.drop();
  }
} finally {
  await server.release();
}

async function measureAll(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'bench' });
  await client.connect();
  const pool = new pg.Pool({ connectionString: url, max: 1, application_name: 'bench' });
  // Keys of an earlier run are sealed with another secret.
  await pool.query('truncate oauth_signing_key');
  const service = await startService(environmentOf(url, { BENCH_NOW: String(benchNow) }));
  try {
    const reader = await createClient(createDatabase(pool), { tenant, scope: 'changelog.changelog_manage' });
    const token = await tokenOf(service.baseUrl, reader);
    await untilQuiet(client);
    await client.query('set jit = off; set max_parallel_workers_per_gather = 0');
    const lines: Line[] = [];
    for (const each of questionClasses(benchNow)) {
      if (settings.row !== undefined && !settings.row.some((row) => each.row.includes(row))) continue;
      for (const part of each.parts.slice(0, cold ? 1 : undefined)) {
        const line = await measure(each, part, service, token, client);
        if (line.annals.length > 0) lines.push(line);
      }
    }
    print(lines);
  } finally {
    await service.stop();
    await client.end();
    await pool.end();
  }
}

/** Waits until the service has done what it does after a start, such as building indexes: until 3 seconds are quiet. */
async function untilQuiet(client: pg.Client): Promise<void> {
  for (let quiet = 0; quiet < 6; ) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { rows } = await client.query(
      `select from pg_stat_activity
         where datname = current_database() and application_name <> 'bench' and state = 'active'
           and clock_timestamp() - query_start > interval '100 milliseconds'`,
    );
    quiet = rows.length === 0 ? quiet + 1 : 0;
  }
}

async function measure(
  each: QuestionClass,
  part: Part,
  service: Service,
  token: string,
  client: pg.Client,
): Promise<Line> {
  const line: Line = { row: each.row, part, matches: 0, annals: [], plain: [] };
  // The first two warm code and tables up.
  for (let number = cold ? 0 : -2; number < variants; number++) {
    const { q, where } = each.variant(2 + number + each.parts.indexOf(part) * (variants + 2));
    // Counting first would warm the plain table up.
    const known = cold ? undefined : await countOf(client, where);
    if ((part === 'deep' || part === 'last') && (known ?? 0) <= size) break;
    const page = pageOf(part, known ?? 0);
    const path = `/changelog/${tenant}/${resourceOf(part, page)}&q=${encodeURIComponent(q)}`;
    const [annals, answer] = await costOf(
      () => spentBy(service, client),
      async () => {
        const response = await fetch(service.baseUrl + path, { headers: { authorization: `Bearer ${token}` } });
        return (await response.json()) as { totalElements?: number; items?: unknown[] };
      },
    );
    const backend = await backendOf(client);
    const own = () => Promise.resolve(processTime(process.pid) + processTime(backend));
    const [plain] = await costOf(own, () => askPlain(client, part, where, (page - 1) * size));
    const total = known ?? (await countOf(client, where));
    if (answer.totalElements !== total) throw new Error(`${q}: ${JSON.stringify(answer).slice(0, 500)}, not ${total}`);
    const items = part === 'histogram' || part === 'facets' ? 0 : Math.min(size, total - (page - 1) * size);
    if ((answer.items?.length ?? 0) !== items) throw new Error(`${q}: a page of ${answer.items?.length}, not ${items}`);
    if (number < 0) continue;
    line.matches = total;
    line.annals.push(annals);
    line.plain.push(plain);
  }
  process.stderr.write(`${each.row}, ${part}: ${processorOf(line.annals)} ms, plain ${processorOf(line.plain)} ms\n`);
  return line;
}

async function costOf<Result>(spent: () => Promise<number>, work: () => Promise<Result>): Promise<[Cost, Result]> {
  const before = await spent();
  const begun = performance.now();
  const result = await work();
  const clock = performance.now() - begun;
  // A thread that has answered may still be tidying up.
  await new Promise((resolve) => setTimeout(resolve, 5));
  return [{ processor: (await spent()) - before, clock }, result];
}

/** Milliseconds of processor time of the service's threads and its connections so far. */
async function spentBy({ pid }: Service, client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and application_name <> 'bench'",
  );
  return rows.reduce((sum, backend) => sum + processTime(backend.pid), processTime(pid));
}

async function backendOf(client: pg.Client): Promise<number> {
  return (await client.query('select pg_backend_pid() as pid')).rows[0].pid;
}

function pageOf(part: Part, total: number): number {
  const pages = Math.max(1, Math.ceil(total / size));
  if (part === 'last') return pages;
  return part === 'deep' ? Math.ceil(pages / 2) : 1;
}

function resourceOf(part: Part, page: number): string {
  if (part === 'histogram') return 'histogram?buckets=60';
  return part === 'facets' ? 'facets?field=path' : `changelogs?page=${page}&size=${size}`;
}

async function countOf(client: pg.Client, where: string): Promise<number> {
  const count = `select count(*)::float8 as total from plain where tenant = $1 and ${where}`;
  return (await client.query(count, [tenant])).rows[0].total;
}

async function askPlain(client: pg.Client, part: Part, where: string, skip: number): Promise<void> {
  const entries = `from plain where tenant = $1 and ${where}`;
  if (part === 'histogram') {
    await client.query(`select date_trunc('day', at), type, count(*) ${entries} group by 1, 2`, [tenant]);
  } else if (part === 'facets') {
    await client.query(
      `with counted as (select key, count(*) from (select plain_keys(paths) as keys ${entries}) as e, unnest(e.keys) as key group by 1)
       select (select count(*) ${entries}) as total, key, count from counted order by count desc, key limit 20`,
      [tenant],
    );
  } else {
    await countOf(client, where);
    const columns = 'at, type, entity, entity_id, name, actor, related, paths';
    const page = `select ${columns} ${entries} order by at desc, id desc limit $2 offset $3`;
    await client.query(page, [tenant, size, skip]);
  }
}

function processorOf(costs: readonly Cost[]): string {
  return median(costs.map(({ processor }) => processor)).toFixed(1);
}

function print(lines: readonly Line[]): void {
  const bare = lines.find(({ row }) => row === 'bare request');
  const bareCost = bare === undefined ? 0 : Number(processorOf(bare.annals));
  const clockOf = (costs: readonly Cost[]) => median(costs.map(({ clock }) => clock)).toFixed(1);
  process.stdout.write(`${Number(settings.entries).toLocaleString('en')} entries, ${state}${cold ? ', cold' : ''}\n\n`);
  printTable(
    [
      'question',
      'matches',
      'part',
      'Annals, ms',
      'plain SQL, ms',
      'Annals / (1.2 plain + bare)',
      'by the clock: Annals, ms',
      'plain SQL, ms',
    ],
    lines.map(({ row, matches, part, annals, plain }) => [
      row,
      matches.toLocaleString('en'),
      part,
      processorOf(annals),
      processorOf(plain),
      (Number(processorOf(annals)) / (1.2 * Number(processorOf(plain)) + bareCost)).toFixed(2),
      clockOf(annals),
      clockOf(plain),
    ]),
  );
}
