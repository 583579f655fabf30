import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import type pg from 'pg';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { tokenOf } from '../access-token.ts';
import { benchNow, openBenchDatabase } from './data.ts';
import { type Installed, installDirectus, installLoadGenerator } from './directus/install.ts';
import { directusToken, serveDirectus, userOf } from './directus/serve.ts';
import { type Question, questionsAt } from './questions.ts';

// The change history over HTTP, side by side in one run and in turn: Annals; the ceiling, a bare handler that reads the
// rows of the page and nothing else (http/ceiling.ts); and Directus, with a million changes of its own and their count.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
    row: { type: 'string', multiple: true },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    out: { type: 'string' },
    /** Annals and the ceiling alone, which needs no installation of Directus. */
    'without-directus': { type: 'boolean', default: false },
  },
});

const tenant = 'big';
const size = 20;
const day = 86_400_000;

interface Ask {
  row: string;
  question: Question;
  page: number;
  /** The filter of Directus besides that on time. */
  filter: Record<string, unknown>;
}

interface Column {
  name: string;
  urlOf: (ask: Ask) => string;
  token: string;
  loads: Load[];
}

interface Load {
  perSecond: number;
  p50: number;
  p99: number;
}

const comparisons = settings['without-directus'] ? [] : [' / Directus | p50 / Directus | p99 / Directus |'];
const heading =
  `| row | connections | Annals, requests/s | / ceiling | p50 / ceiling | p99 / ceiling |${comparisons.join('')}\n` +
  `|---|---:|---:|---:|---:|---:|${comparisons.map(() => '---:|---:|---:|').join('')}\n`;

const children: ChildProcess[] = [];
const entries = Number(settings.entries);
const directus = settings['without-directus'] ? undefined : installDirectus(join(settings.data, 'directus'));
const loadGenerator = directus?.folder ?? installLoadGenerator(join(settings.data, 'autocannon'));
const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line) => process.stderr.write(`${line}\n`) });
const pool = await openBenchDatabase(embedded.url, entries);
const db = createDatabase(pool);
try {
  await migrate(pool);
  const url = String(pool.options.connectionString);
  const asks = await asksOf(pool);
  const columns = await startAll(url, asks);
  const lines: string[] = [];
  for (const ask of asks) lines.push(...(await measure(ask, columns)));
  const report = `${heading}${lines.join('\n')}\n`;
  process.stdout.write(report);
  if (settings.out !== undefined) await writeFile(settings.out, report);
} finally {
  for (const child of children.filter((one) => one.exitCode === null)) {
    child.kill();
    await once(child, 'exit');
  }
  await db.destroy();
  await embedded.release();
}

async function asksOf(connections: pg.Pool): Promise<Ask[]> {
  const filters: Record<string, Record<string, unknown>> = {
    'no filter': {},
    entity: { collection: { _eq: 'order' } },
    'entity and type': { collection: { _eq: 'product' }, action: { _eq: 'create' } },
    'actor exact': { user: { _eq: userOf('system') } },
    'actor exact, few entries': { user: { _eq: userOf('Jane Doe 07') } },
    entityId: { collection: { _eq: 'order' }, item: { _eq: 'd4711' } },
    'explicit 60 days': {},
  };
  const asks: Ask[] = [];
  for (const question of questionsAt(benchNow)) {
    const filter = filters[question.row];
    if (filter === undefined) continue;
    asks.push({ row: question.row, question, page: 1, filter });
    if (question.row !== 'no filter') continue;
    const { rows } = await connections.query(
      `select count(*)::integer as total from plain where ${conditionOf(question)}`,
      [tenant],
    );
    const middle = Math.ceil(rows[0].total / size / 2);
    asks.push({ row: 'no filter, middle page', question, page: middle, filter });
  }
  return asks.filter(({ row }) => settings.row === undefined || settings.row.includes(row));
}

function conditionOf({ where, days = 30 }: Question): string {
  return `tenant = $1 and at >= '${new Date(benchNow - days * day).toISOString()}' and ${where}`;
}

/** Starts the three and answers what each is asked by. */
async function startAll(url: string, asks: readonly Ask[]): Promise<Column[]> {
  const secretKey = randomBytes(32).toString('base64');
  // The keys that another run has left are sealed with another secret.
  await pool.query('truncate oauth_signing_key');
  const annals = await start('annals.ts', { DATABASE_URL: url, ANNALS_SECRET_KEY: secretKey, PORT: '0' });
  const client = await createClient(db, { tenant, scope: 'changelog.changelog_read', name: 'bench' });
  const token = await tokenOf(annals, client);
  const statements: Record<string, { text: string; values: unknown[] }> = {};
  for (const ask of asks) statements[ask.row] = await statementOf(ask);
  const ceiling = await start('ceiling.ts', {
    DATABASE_URL: url,
    ANNALS_URL: annals,
    ANNALS_NOW: String(benchNow),
    STATEMENTS: JSON.stringify(statements),
  });
  const path = `/changelog/${tenant}/changelogs`;
  const columns: Column[] = [
    {
      name: 'Annals',
      token,
      loads: [],
      urlOf: ({ question, page }) => {
        const parameters = new URLSearchParams();
        if (question.q !== '') parameters.set('q', question.q);
        if (page > 1) parameters.set('page', String(page));
        return `${annals}${path}${parameters.size === 0 ? '' : `?${parameters}`}`;
      },
    },
    {
      name: 'ceiling',
      token,
      loads: [],
      urlOf: ({ row, page }) => `${ceiling}${path}?${new URLSearchParams({ row, page: String(page) })}`,
    },
  ];
  if (directus !== undefined) columns.push(await startDirectus(directus, url));
  return columns;
}

async function startDirectus(installed: Installed, url: string): Promise<Column> {
  const served = await serveDirectus(installed, { url, entries }, await freePort());
  children.push(served.child);
  return {
    name: 'Directus',
    token: directusToken,
    loads: [],
    urlOf: ({ question, page, filter }) => {
      const since = new Date(benchNow - (question.days ?? 30) * day).toISOString();
      const parameters = new URLSearchParams({
        filter: JSON.stringify({ timestamp: { _gte: since }, ...filter }),
        sort: '-timestamp',
        limit: String(size),
        page: String(page),
        meta: 'filter_count',
      });
      return `${served.url}/activity?${parameters}`;
    },
  };
}

/** The rows of the page, of which somebody has told where they begin. */
async function statementOf({ question, page }: Ask): Promise<{ text: string; values: unknown[] }> {
  const condition = conditionOf(question);
  const { rows } = await pool.query<{ at: Date }>(
    `select at from plain where ${condition} order by at desc, id desc limit 1 offset $2`,
    [tenant, (page - 1) * size],
  );
  return {
    text: `select round(extract(epoch from at) * 1000)::text as moment, type, entity, entity_id, name, actor,
                  related::text as related, paths
             from plain where ${condition} and at <= $2 order by at desc, id desc limit $3`,
    values: [tenant, rows[0]?.at.toISOString(), size],
  };
}

async function start(file: string, environment: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'http', file)], {
    env: { ...process.env, NODE_ENV: 'production', ...environment },
    // The log lines are written, and go where those of Directus go.
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  children.push(child);
  if (child.stdout === null) throw new Error('a server has no output');
  for await (const line of createInterface({ input: child.stdout })) return line;
  throw new Error(`${file} ended before it was ready`);
}

async function measure(ask: Ask, columns: readonly Column[]): Promise<string[]> {
  await checkAnswers(ask, columns);
  const lines: string[] = [];
  for (const connections of [1, 16]) {
    for (const column of columns) {
      column.loads = [];
      await load(column, ask, connections, 1);
    }
    for (let round = 0; round < Number(settings.rounds); round++) {
      // In another order each time, so that other work of the machine slows down all of them alike.
      for (const index of columns.keys()) {
        const column = columns[(index + round) % columns.length];
        column?.loads.push(await load(column, ask, connections, Number(settings.seconds)));
      }
    }
    lines.push(lineOf(ask, connections, columns));
    process.stderr.write(`${lines.at(-1)}\n`);
  }
  return lines;
}

async function load({ urlOf, token }: Column, ask: Ask, connections: number, seconds: number): Promise<Load> {
  const args = [loadGenerator, urlOf(ask), String(connections), String(seconds), token];
  const child = spawn(process.execPath, [join(import.meta.dirname, 'http/load.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const answer = await text(child.stdout);
  if (answer === '') throw new Error(`${ask.row} could not be loaded`);
  return JSON.parse(answer);
}

/** All three give the same page, as far as each has it, and the two that count agree with the table they read. */
async function checkAnswers(ask: Ask, columns: readonly Column[]): Promise<void> {
  const [annals, ceiling, other] = await Promise.all(
    columns.map(async ({ urlOf, token }) => {
      const answer = await fetch(urlOf(ask), { headers: { authorization: `Bearer ${token}` } });
      return (await answer.json()) as Record<string, unknown>;
    }),
  );
  if (!isDeepStrictEqual(annals?.items, ceiling?.items)) throw new Error(`${ask.row}: the ceiling has another page`);
  const { rows } = await pool.query(`select count(*)::integer as total from plain where ${conditionOf(ask.question)}`, [
    tenant,
  ]);
  if (annals?.totalElements !== rows[0].total) throw new Error(`${ask.row}: ${annals?.totalElements} is not the total`);
  if (other === undefined) return;
  const { data, meta } = other as { data?: unknown[]; meta?: { filter_count?: number } };
  if (data === undefined || (meta?.filter_count ?? 0) < data.length)
    throw new Error(`${ask.row}: Directus has no page`);
}

function lineOf({ row }: Ask, connections: number, columns: readonly Column[]): string {
  const [annals, ceiling, other] = columns.map(({ loads }) => ({
    perSecond: median(loads.map((one) => one.perSecond)),
    p50: median(loads.map((one) => one.p50)),
    p99: median(loads.map((one) => one.p99)),
  })) as [Load, Load, Load?];
  const ratio = (one: number, another: number) => (one / another).toFixed(2);
  const ratios = (to: Load) =>
    [ratio(annals.perSecond, to.perSecond), ratio(annals.p50, to.p50), ratio(annals.p99, to.p99)].join(' | ');
  const cells = [row, connections, Math.round(annals.perSecond), ratios(ceiling)];
  return `| ${[...cells, ...(other === undefined ? [] : [ratios(other)])].join(' | ')} |`;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, another) => one - another)[Math.floor(values.length / 2)] ?? Number.NaN;
}
