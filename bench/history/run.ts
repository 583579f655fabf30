import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createFindPage, type FindPage } from '../../src/history/search/find-page.ts';
import { DictionaryCache } from '../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import { benchNow, openBenchDatabase } from './data.ts';
import { type Question, questionsAt, shortTableRows } from './questions.ts';

const size = 20;
const tenant = 'big';
const rowColumns = 'at, type, entity, entity_id, name, actor, related, paths';

interface Column {
  name: string;
  ask: () => Promise<unknown>;
  milliseconds: number[];
}

interface Row {
  entries: number;
  question: Question;
  page: string;
  total: number;
  columns: Column[];
}

const { values } = parseArgs({
  options: {
    entries: { type: 'string', multiple: true, default: ['750000', '3750000'] },
    rounds: { type: 'string', default: '30' },
    row: { type: 'string', multiple: true },
    /** Prints ten rows, each with its first and its middle page. */
    short: { type: 'boolean', default: false },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    out: { type: 'string' },
  },
});

const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: values.data, log: (line: string) => process.stderr.write(`${line}\n`) });
try {
  const histories: History[] = [];
  for (const entries of values.entries.map(Number)) histories.push(await openHistory(embedded.url, entries));
  const rows: Row[] = [];
  for (const question of questionsAt(benchNow)) {
    const wanted = values.short ? shortTableRows : values.row;
    if (wanted !== undefined && !wanted.includes(question.row)) continue;
    rows.push(...(await measure(histories, question)));
  }
  for (const history of histories) await history.close();
  const inOrder = rows.toSorted((one, other) => one.entries - other.entries);
  const report = values.short ? shortTable(inOrder) : table(inOrder);
  process.stdout.write(report);
  if (values.out !== undefined) await writeFile(values.out, report);
} finally {
  await embedded.release();
}

interface History {
  entries: number;
  client: pg.Client;
  findPage: FindPage;
  close: () => Promise<void>;
}

async function openHistory(url: string, entries: number): Promise<History> {
  const pool = await openBenchDatabase(url, entries);
  const db = createDatabase(pool);
  const regexes = new RegexMatcherPool();
  const dictionaries = new DictionaryCache(pool);
  // The other columns have one connection, as prepared statements want it; so has Annals, one request at a time.
  const client = new pg.Client({ connectionString: pool.options.connectionString });
  await client.connect();
  await client.query('set jit = off; set max_parallel_workers_per_gather = 2');
  return {
    entries,
    client,
    findPage: createFindPage({ pool, db, regexes, now: () => benchNow, dictionaries }),
    async close() {
      await client.end();
      await db.destroy();
    },
  };
}

/** A question's first, middle and last page, each asked of all histories in turn. */
async function measure(histories: readonly History[], question: Question): Promise<Row[]> {
  const query = parseQuery(question.q, changelogDialect);
  const rows: Row[] = [];
  for (const page of values.short ? ['first', 'middle'] : ['first', 'middle', 'last']) {
    const asked: Row[] = [];
    for (const history of histories) {
      const { total } = await history.findPage(tenant, query, { skip: 0, size: 1 });
      await checkTotal(history.client, question, total);
      const pages = Math.max(1, Math.ceil(total / size));
      if (page !== 'first' && pages === 1) continue;
      const number = { first: 1, middle: Math.ceil(pages / 2), last: pages }[page] ?? 1;
      const columns = await columnsOf(history, question, (number - 1) * size);
      asked.push({ entries: history.entries, question, page, total, columns });
    }
    await interleave(
      asked.flatMap(({ columns }) => columns),
      Number(values.rounds),
    );
    for (const { entries, columns } of asked) {
      const medians = columns.map((column) => `${column.name} ${median(column).toFixed(2)}`);
      process.stderr.write(`${entries} ${question.row} ${page}: ${medians.join(', ')}\n`);
    }
    rows.push(...asked);
  }
  return rows;
}

async function columnsOf({ client, findPage }: History, question: Question, skip: number): Promise<Column[]> {
  const ask = () => findPage(tenant, parseQuery(question.q, changelogDialect), { skip, size });
  return [
    { name: 'Annals', ask, milliseconds: [] },
    { name: 'plain SQL', ask: plainSql(client, question, skip), milliseconds: [] },
    { name: 'floor', ask: await floor(client, question, skip), milliseconds: [] },
  ];
}

/**
 * Each column in turn, so that whatever else the machine does meets all of them alike. A turn is a few calls, as many as
 * take some 20 ms, so that what is fast is not measured with the caches that what is slow has left.
 */
async function interleave(columns: readonly Column[], rounds: number): Promise<void> {
  for (const column of columns) await warm(column);
  for (let round = 0; round < rounds; round++) {
    for (const column of columns) {
      // What takes seconds need not be asked so often.
      if (round >= 5 && median(column) > 200) continue;
      const turn = performance.now();
      for (let call = 0; call < 20 && performance.now() - turn < 20; call++) {
        const begun = performance.now();
        await column.ask();
        column.milliseconds.push(performance.now() - begun);
      }
    }
  }
}

/** As a service is that has been running for a while: 300 calls or half a second of them, 3 at least. */
async function warm({ ask }: Column): Promise<void> {
  const begun = performance.now();
  for (let call = 0; call < 300; call++) {
    if (call >= 3 && performance.now() - begun > 500) return;
    await ask();
  }
}

function conditionOf({ where, days = 30 }: Question): string {
  return `tenant = $1 and at >= '${new Date(benchNow - days * 86_400_000).toISOString()}' and ${where}`;
}

function plainSql(client: pg.Client, question: Question, skip: number): () => Promise<unknown> {
  const condition = conditionOf(question);
  const name = `${question.row} ${skip}`;
  return async () => {
    await client.query({
      name: `count ${name}`,
      text: `select count(*) from plain where ${condition}`,
      values: [tenant],
    });
    await client.query({
      name: `page ${name}`,
      text: `select ${rowColumns} from plain where ${condition} order by at desc, id desc limit $2 offset $3`,
      values: [tenant, size, skip],
    });
  };
}

/** The rows of the page alone, of which somebody has told where they begin. */
async function floor(client: pg.Client, question: Question, skip: number): Promise<() => Promise<unknown>> {
  const condition = conditionOf(question);
  const { rows } = await client.query(
    `select at, id from plain where ${condition} order by at desc, id desc limit 1 offset $2`,
    [tenant, skip],
  );
  const first = rows[0] ?? { at: new Date(benchNow), id: 0 };
  return async () =>
    await client.query({
      name: `floor ${question.row} ${skip}`,
      text: `select ${rowColumns} from plain where ${condition} and at <= $2 order by at desc, id desc limit $3`,
      values: [tenant, first.at, size],
    });
}

async function checkTotal(client: pg.Client, question: Question, total: number): Promise<void> {
  const { rows } = await client.query(`select count(*) as total from plain where ${conditionOf(question)}`, [tenant]);
  if (Number(rows[0].total) !== total) throw new Error(`${question.row}: ${total}, and ${rows[0].total} by counting`);
}

function median({ milliseconds }: Column): number {
  return quantile(milliseconds, 0.5);
}

function quantile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** A row for each question: what its first and its middle page cost. */
function shortTable(rows: readonly Row[]): string {
  const lines = [
    '| entries | question | matches | page 1: plain SQL / Annals | page 1: Annals / floor | middle page: plain SQL / Annals | middle page: Annals / floor |',
    '|---:|---|---:|---:|---:|---:|---:|',
  ];
  for (const { entries, question, total, columns } of rows.filter(({ page }) => page === 'first')) {
    const middle = rows.find((row) => row.entries === entries && row.question === question && row.page === 'middle');
    lines.push(
      `| ${entries.toLocaleString('en')} | ${question.row} | ${total.toLocaleString('en')} | ` +
        `${ratiosOf(columns)} | ${middle === undefined ? ' | ' : ratiosOf(middle.columns)} |`,
    );
  }
  return `${lines.join('\n')}\n`;
}

function ratiosOf(columns: readonly Column[]): string {
  const [annals, plain, lowest] = columns.map(median) as [number, number, number];
  return `${(plain / annals).toFixed(1)} | ${(annals / lowest).toFixed(1)}`;
}

function table(rows: readonly Row[]): string {
  const smallest = Math.min(...rows.map(({ entries }) => entries));
  const lines = [
    '| entries | row | matches | page | Annals, median (p99) | plain SQL / Annals | Annals / floor | Annals / Annals with the fewest entries |',
    '|---:|---|---:|---|---:|---:|---:|---:|',
  ];
  for (const { entries, question, page, total, columns } of rows) {
    const [annals, plain, lowest] = columns.map(median) as [number, number, number];
    const small = rows.find(
      (row) => row.entries === smallest && row.question.row === question.row && row.page === page,
    );
    const least = small?.columns[0] === undefined || small.entries === entries ? undefined : median(small.columns[0]);
    const p99 = quantile(columns[0]?.milliseconds ?? [], 0.99);
    lines.push(
      `| ${entries.toLocaleString('en')} | ${question.row} | ${total.toLocaleString('en')} | ${page} | ${annals.toFixed(2)} ms (${p99.toFixed(1)}) | ` +
        `${(plain / annals).toFixed(1)} | ${(annals / lowest).toFixed(2)} | ${least === undefined ? '' : (annals / least).toFixed(2)} |`,
    );
  }
  return `${lines.join('\n')}\n`;
}
