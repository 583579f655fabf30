import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { Random } from '../../src/demo/random.ts';
import { changelogDialect } from '../../src/history/ask/dialect.ts';
import { createFindPage } from '../../src/history/find-page.ts';
import { DictionaryCache } from '../../src/history/names/dictionary-cache.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import { benchNow, openBenchDatabase } from './data.ts';
import { Backends, type Cost, costOf, quantile } from './processor-time.ts';
import { type SessionQuestion, sessionQuestions } from './session/questions.ts';

// A session as people have it, while changes are recorded and folded: the first page, 20 pages forward, the last one, one
// somewhere, and the first again every second. Each column asks each page, one after the other.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '750000' },
    sessions: { type: 'string', default: '10' },
    /** Changes that are recorded in a second. */
    changes: { type: 'string', default: '200' },
    row: { type: 'string', multiple: true },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    out: { type: 'string' },
  },
});

const size = 20;
const tenant = 'big';
const pagesForward = 20;
/** Milliseconds that the client looks at a page before it turns it. */
const look = 150;
const rowColumns = 'at, type, entity, entity_id, name, actor, related, paths';
const steps = ['first', 'forward', 'last', 'random', 'refresh'] as const;
type Step = (typeof steps)[number];

interface Column {
  name: string;
  backends: Backends;
  /** Does work whose time does not count. */
  prepare: (question: SessionQuestion, page: number) => Promise<unknown>;
  ask: (question: SessionQuestion, page: number) => Promise<unknown>;
  costs: Record<Step, Cost[]>;
  close: () => Promise<void>;
}

let turns = 0;
let recorder: Awaited<ReturnType<typeof startRecorder>> | undefined;

const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line: string) => process.stderr.write(`${line}\n`) });
const entries = Number(settings.entries);
const copyName = `annals_bench_session_${randomBytes(4).toString('hex')}`;
try {
  const url = await copyDatabase();
  // The clock starts at the moment of the data.
  const shift = benchNow - Date.now();
  recorder = await startRecorder(url, shift);
  const lines: string[] = [];
  for (const question of sessionQuestions) {
    if (settings.row !== undefined && !settings.row.includes(question.row)) continue;
    lines.push(...(await measure(url, shift, question)));
  }
  const report =
    `${entries.toLocaleString('en')} entries, 80 % of them of the tenant; ${recorder.perSecond()} changes a second ` +
    `recorded beside it.\n\n${heading()}${lines.join('\n')}\n`;
  process.stdout.write(report);
  if (settings.out !== undefined) await writeFile(settings.out, report);
} finally {
  await recorder?.stop();
  const server = createPool(embedded.url, { maximum: 1 });
  await server.query(`drop database if exists ${copyName} with (force)`);
  await server.end();
  await embedded.release();
}

/** The sessions change what they read, so they get a copy. */
async function copyDatabase(): Promise<string> {
  const source = await openBenchDatabase(embedded.url, entries);
  const { rows } = await source.query('select current_database() as name');
  await source.end();
  const server = createPool(embedded.url, { maximum: 1 });
  await server.query(`create database ${copyName} template ${rows[0].name} strategy file_copy`);
  await server.end();
  const url = new URL(embedded.url);
  url.pathname = copyName;
  return url.href;
}

async function startRecorder(url: string, shift: number) {
  const child: ChildProcess = spawn(
    process.execPath,
    [join(import.meta.dirname, 'session/recorder.ts'), url, tenant, settings.changes, String(shift)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error('the recorder has no pipes');
  let recorded = 0;
  const lines = createInterface(stdout).on('line', (line) => {
    recorded = Number(line);
  });
  await Promise.race([once(lines, 'line'), once(child, 'exit').then(() => Promise.reject(new Error('no recorder')))]);
  const begun = { recorded, at: performance.now() };
  return {
    perSecond: () => Math.round((1000 * (recorded - begun.recorded)) / (performance.now() - begun.at)),
    async stop() {
      stdin.end();
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}

async function measure(url: string, shift: number, question: SessionQuestion): Promise<string[]> {
  const columns = [annals(url, shift), await floor(url)];
  try {
    const total = await totalOf(columns[0], question);
    const last = Math.max(1, Math.ceil(total / size));
    // Whatever is compiled and read once is so before it counts.
    for (const page of [1, 2, Math.ceil(last / 2), last]) await turn(columns, undefined, question, page);
    const random = new Random(11);
    for (let session = 0; session < Number(settings.sessions); session++) {
      await runSession(columns, question, { last, anywhere: random.integer(Math.min(last, pagesForward + 2), last) });
    }
    return steps.map((step) => lineOf(question, step, total, columns));
  } finally {
    for (const { close } of columns) await close();
  }
}

async function runSession(
  columns: readonly Column[],
  question: SessionQuestion,
  { last, anywhere }: { last: number; anywhere: number },
): Promise<void> {
  let refreshed = performance.now();
  const see = async (step: Step, page: number) => {
    await turn(columns, step, question, page);
    await sleep(look);
    if (performance.now() - refreshed < 1_000) return;
    refreshed = performance.now();
    await turn(columns, 'refresh', question, 1);
  };
  await see('first', 1);
  for (let page = 2; page <= Math.min(last, pagesForward + 1); page++) await see('forward', page);
  await see('last', last);
  await see('random', anywhere);
}

/** Every column asks for the page, another one first each time. */
async function turn(
  columns: readonly Column[],
  step: Step | undefined,
  question: SessionQuestion,
  page: number,
): Promise<void> {
  turns += 1;
  for (const index of columns.keys()) {
    const column = columns[(index + turns) % columns.length];
    await column?.prepare(question, page);
    const cost = column && (await costOf(column.backends, () => column.ask(question, page)));
    if (step !== undefined && cost !== undefined) column?.costs[step].push(cost);
  }
}

function annals(url: string, shift: number): Column {
  const pool = createPool(url);
  const backends = new Backends();
  backends.addPool(pool);
  const db = createDatabase(pool);
  const regexes = new RegexMatcherPool();
  const dictionaries = new DictionaryCache(pool);
  const findPage = createFindPage({ pool, db, regexes, now: () => Date.now() + shift, dictionaries });
  return {
    name: 'Annals',
    backends,
    costs: { first: [], forward: [], last: [], random: [], refresh: [] },
    prepare: async () => {},
    async ask({ q }, page) {
      return await findPage(tenant, parseQuery(q, changelogDialect), { skip: (page - 1) * size, size });
    },
    async close() {
      await regexes.close();
      await db.destroy();
    },
  };
}

/** The rows of the page alone, of which somebody has told where they begin, from a table that nobody writes. */
async function floor(url: string): Promise<Column> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('set jit = off; set max_parallel_workers_per_gather = 0');
  const backends = new Backends();
  await backends.addClient(client);
  const begins = new Map<string, Date>();
  const since = new Date(benchNow - 30 * 86_400_000);
  const beginOf = async ({ row, where }: SessionQuestion, page: number) => {
    const key = `${row} ${page}`;
    const known = begins.get(key);
    if (known !== undefined) return known;
    const { rows } = await client.query(
      `select at from plain where tenant = $1 and at >= $2 and ${where} order by at desc, id desc limit 1 offset $3`,
      [tenant, since, (page - 1) * size],
    );
    const begin: Date = rows[0]?.at ?? since;
    begins.set(key, begin);
    return begin;
  };
  return {
    name: 'floor',
    backends,
    costs: { first: [], forward: [], last: [], random: [], refresh: [] },
    prepare: beginOf,
    async ask(question, page) {
      const begin = await beginOf(question, page);
      return await client.query({
        name: question.row,
        text: `select ${rowColumns} from plain where tenant = $1 and at >= $2 and at <= $3 and ${question.where}
                 order by at desc, id desc limit $4`,
        values: [tenant, since, begin, size],
      });
    },
    close: () => client.end(),
  };
}

async function totalOf(column: Column | undefined, question: SessionQuestion): Promise<number> {
  const page = await column?.ask(question, 1);
  if (typeof page !== 'object' || page === null || !('total' in page)) throw new Error(`${question.row} has no total`);
  return Number(page.total);
}

function heading(): string {
  const columns = ['Annals', 'floor'].flatMap((name) => [`${name}, processor`, `${name}, clock`]);
  const all = ['row', 'matches', 'page', ...columns, 'Annals / floor'];
  return (
    'Milliseconds, median (99th percentile); the processor time is that of the service and of its backends together; ' +
    `ratios are of its medians.\n\n| ${all.join(' | ')} |\n|${all.map((_, index) => (index === 0 || index === 2 ? '---' : '---:')).join('|')}|\n`
  );
}

function lineOf(question: SessionQuestion, step: Step, total: number, columns: readonly Column[]): string {
  const times = columns.flatMap(({ costs }) => {
    const processor = costs[step].map(({ service, database }) => service + database);
    return [processor, costs[step].map(({ clock }) => clock)];
  });
  const median = (column: Column) =>
    quantile(
      column.costs[step].map(({ service, database }) => service + database),
      0.5,
    );
  const lowest = median(columns.at(-1) as Column);
  const ratios = columns.slice(0, -1).map((column) => (median(column) / lowest).toFixed(1));
  const cells = times.map((values) => `${quantile(values, 0.5).toFixed(2)} (${quantile(values, 0.99).toFixed(1)})`);
  const line = `| ${[question.row, total.toLocaleString('en'), step, ...cells, ...ratios].join(' | ')} |`;
  process.stderr.write(`${line}\n`);
  return line;
}
