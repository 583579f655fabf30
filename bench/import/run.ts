import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { copyIn, copyOut } from './copy.ts';
import { ProcessorTimes } from './processor-time.ts';
import { writeShopFile } from './shop-file.ts';

// What recording costs over writing the same rows: `annals import` of a file, in a process of its own as an operator
// runs it, and a bare COPY of the rows that it left into the same tables of another database; in turn, in one run.
const { values: settings, positionals: files } = parseArgs({
  allowPositionals: true,
  options: {
    lines: { type: 'string', default: '200000' },
    rounds: { type: 'string', default: '5' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    parts: { type: 'boolean', default: false },
  },
});

/** In an order in which they may be written; the columns are all of them, generated ones too. */
const tables = ['change_kind', 'change_actor', 'change_entry', 'change_related', 'change_delta', 'change_tally'];
const launcher = join(import.meta.dirname, '../../bin/annals.js');
const tenant = 'shop';
const template = 'annals_bench_import_template';

interface Run {
  seconds: number;
  entries: number;
  /** Milliseconds of processor time by part; empty without `--parts`. */
  parts: ReadonlyMap<string, number>;
}

await mkdir(settings.data, { recursive: true });
const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line) => process.stderr.write(`${line}\n`) });
const server = createPool(embedded.url, { maximum: 1 });
try {
  await makeTemplate();
  const lines: string[] = [];
  const parts: string[] = [];
  for (const file of files.length > 0 ? files : [await shopFile()]) {
    const { imports, copies } = await measure(file);
    lines.push(lineOf(file, imports, copies));
    if (settings.parts) parts.push(...partLines(imports, 'import'), ...partLines(copies, 'COPY'));
  }
  process.stdout.write(
    '| file | entries | import / COPY, entries a second (all runs) | import | COPY |\n|---|---:|---:|---:|---:|\n' +
      `${lines.join('\n')}\n`,
  );
  if (parts.length > 0) {
    process.stdout.write(`\n| processor time | µs an entry (all runs) |\n|---|---:|\n${parts.join('\n')}\n`);
  }
} finally {
  await server.query(`drop database if exists ${template}`);
  await server.end();
  await embedded.release();
}

async function shopFile(): Promise<string> {
  const path = join(settings.data, `shop-${settings.lines}.ndjson`);
  if (!existsSync(path)) await writeShopFile(path, Number(settings.lines));
  return path;
}

async function measure(file: string): Promise<{ imports: Run[]; copies: Run[] }> {
  const imports: Run[] = [];
  const copies: Run[] = [];
  for (let round = 0; round < Number(settings.rounds); round++) {
    const { run, rows } = await withDatabase((url) => importFile(url, file));
    imports.push(run);
    copies.push(await withDatabase((url) => copyRows(url, rows, run.entries)));
    process.stderr.write(
      `${basename(file)}: import ${run.seconds.toFixed(2)} s, COPY ${copies.at(-1)?.seconds.toFixed(2)} s\n`,
    );
  }
  return { imports, copies };
}

function lineOf(file: string, imports: readonly Run[], copies: readonly Run[]): string {
  const ratios = imports
    .map((one, round) => speed(one) / speed(copies[round] ?? one))
    .sort((one, other) => one - other);
  const all = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
  return (
    `| ${basename(file)} | ${imports[0]?.entries.toLocaleString('en')} | ${median(ratios).toFixed(2)} (${all}) | ` +
    `${Math.round(median(imports.map(speed))).toLocaleString('en')} /s | ${Math.round(median(copies.map(speed))).toLocaleString('en')} /s |`
  );
}

/** The median of each part's microseconds for an entry. */
function partLines(runs: readonly Run[], what: string): string[] {
  const names = [...new Set(runs.flatMap((run) => [...run.parts.keys()]))];
  const of = (name: string) => runs.map((run) => ((run.parts.get(name) ?? 0) * 1000) / run.entries);
  const line = (name: string, times: readonly number[]) =>
    `| ${what}: ${name} | ${median(times).toFixed(1)} (${times.map((time) => time.toFixed(1)).join(' ')}) |`;
  const sums = runs.map((_, run) => names.reduce((sum, name) => sum + (of(name)[run] ?? 0), 0));
  return [...names.map((name) => line(name, of(name))), line('all', sums)];
}

async function importFile(url: string, file: string): Promise<{ run: Run; rows: Map<string, Buffer[]> }> {
  const begun = performance.now();
  const command = spawn(process.execPath, [launcher, 'import', '--tenant', tenant, file], {
    env: { ...process.env, DATABASE_URL: url, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const times = await startTimes(url, command.pid);
  const [answer, [code]] = await Promise.all([text(command.stdout), once(command, 'exit')]);
  const seconds = (performance.now() - begun) / 1000;
  await times?.stop();
  const counts: { recorded: number } = JSON.parse(answer);
  if (code !== 0 || counts.recorded === 0) throw new Error(`the import ended with ${code} and ${answer.trim()}`);
  const rows = await withClient(url, async (client) => {
    const all = new Map<string, Buffer[]>();
    // In the order in which they were written, which is the order of their numbers.
    for (const table of tables) all.set(table, await copyOut(client, `select * from ${table} order by ctid`));
    return all;
  });
  return { run: { seconds, entries: counts.recorded, parts: times?.parts ?? new Map() }, rows };
}

async function copyRows(url: string, rows: ReadonlyMap<string, Buffer[]>, entries: number): Promise<Run> {
  return await withClient(url, async (client) => {
    const times = await startTimes(url);
    const begun = performance.now();
    for (const [table, chunks] of rows) await copyIn(client, table, chunks);
    const seconds = (performance.now() - begun) / 1000;
    await times?.stop();
    const { rows: counted } = await client.query('select count(*)::integer as entries from change_entry');
    if (counted[0].entries !== entries) throw new Error(`${counted[0].entries} of ${entries} entries were copied`);
    return { seconds, entries, parts: times?.parts ?? new Map() };
  });
}

async function startTimes(url: string, process?: number): Promise<ProcessorTimes | undefined> {
  if (!settings.parts) return undefined;
  return await ProcessorTimes.start(embedded.url, new URL(url).pathname.slice(1), process);
}

/** A database with the schema and the tenant, so that neither of the two has to make them. */
async function makeTemplate(): Promise<void> {
  await server.query(`drop database if exists ${template}`);
  await server.query(`create database ${template}`);
  const pool = createPool(urlOf(template), { maximum: 2 });
  try {
    await migrate(pool);
    await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
  } finally {
    await pool.end();
  }
}

async function withDatabase<Result>(work: (url: string) => Promise<Result>): Promise<Result> {
  const name = `annals_bench_import_${randomBytes(4).toString('hex')}`;
  await server.query(`create database ${name} template ${template}`);
  // Writes what the last run has left to write, so that its time does not count for this run.
  await server.query('checkpoint');
  try {
    return await work(urlOf(name));
  } finally {
    await server.query(`drop database ${name} with (force)`);
  }
}

async function withClient<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function urlOf(database: string): string {
  const url = new URL(embedded.url);
  url.pathname = database;
  return url.href;
}

function speed({ entries, seconds }: Run): number {
  return entries / seconds;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}
