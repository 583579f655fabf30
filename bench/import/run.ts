import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { launcher } from '../../test/support/server/command.ts';
import { median, printTable } from '../figures.ts';
import { parentOf, processTime, serverTime } from '../processor-time.ts';
import { openBenchServer } from '../server.ts';
import { environmentOf } from '../service.ts';
import { shopFile } from './shop-file.ts';

// What recording costs over writing the same rows: `annals import` of a file in its own process, as an operator runs
// it, and a bare COPY of the resulting rows into the same tables of another database; in turn, in one run.
const { values: settings, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { lines: { type: 'string', default: '200000' }, rounds: { type: 'string', default: '5' } },
});

/** In an order that foreign keys allow. All columns are copied, generated ones too. */
const tables = ['change_kind', 'change_actor', 'change_entry', 'change_related', 'change_delta', 'change_tally'];
const tenant = 'shop';

interface Run {
  entries: number;
  seconds: number;
  /** Microseconds of processor time an entry: of the import's process, and of the database. */
  service: number;
  database: number;
}

const server = await openBenchServer();
const template = await server.create();
try {
  await createTenant(template.db, tenant);
  // PostgreSQL copies a template only without connections.
  await template.pool.end();
  const rows: string[][] = [];
  for (const file of files.length > 0 ? files : [await shopFile(Number(settings.lines))])
    rows.push(await measure(file));
  printTable(
    [
      'file',
      'entries',
      'import / COPY, entries a second (all rounds)',
      'import, µs an entry: process',
      'database',
      'COPY, µs an entry: database',
    ],
    rows,
  );
} finally {
  await server.query(`drop database ${template.name}`);
  await server.release();
}

async function measure(file: string): Promise<string[]> {
  const imports: Run[] = [];
  const copies: Run[] = [];
  for (let round = 0; round < Number(settings.rounds); round++) {
    const { run, rows } = await withDatabase((client, url) => importFile(client, url, file));
    imports.push(run);
    copies.push(await withDatabase((client) => copyRows(client, rows, run.entries)));
    process.stderr.write(`import ${run.seconds.toFixed(2)} s, COPY ${copies.at(-1)?.seconds.toFixed(2)} s\n`);
  }
  const ratios = imports.map(({ seconds }, round) => (copies[round]?.seconds ?? Number.NaN) / seconds);
  const all = ratios.toSorted().map((ratio) => ratio.toFixed(2));
  const middle = (runs: readonly Run[], of: 'service' | 'database') => median(runs.map((run) => run[of])).toFixed(1);
  return [
    basename(file),
    (imports[0]?.entries ?? 0).toLocaleString('en'),
    `${median(ratios).toFixed(2)} (${all.join(' ')})`,
    middle(imports, 'service'),
    middle(imports, 'database'),
    middle(copies, 'database'),
  ];
}

async function importFile(client: pg.Client, url: string, file: string) {
  const begun = performance.now();
  const before = await databaseTime(client);
  const command = spawn(process.execPath, [launcher, 'import', '--tenant', tenant, file], {
    env: environmentOf(url),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let service = 0;
  const sampling = setInterval(() => {
    service = Math.max(service, processTime(command.pid ?? 0));
  }, 20);
  const [answer, [code]] = await Promise.all([text(command.stdout), once(command, 'exit')]);
  clearInterval(sampling);
  const seconds = (performance.now() - begun) / 1000;
  const { recorded: entries }: { recorded: number } = JSON.parse(answer);
  if (code !== 0 || entries === 0) throw new Error(`the import ended with ${code} and ${answer.trim()}`);
  const database = ((await databaseTime(client)) - before) / entries;
  const rows = new Map<string, Buffer>();
  // In the order in which they were written.
  for (const table of tables) {
    const copy = client.query(copyTo(`copy (select * from ${table} order by ctid) to stdout (format binary)`));
    rows.set(table, await buffer(copy));
  }
  return { run: { entries, seconds, service: (service * 1000) / entries, database: database * 1000 }, rows };
}

async function copyRows(client: pg.Client, rows: ReadonlyMap<string, Buffer>, entries: number): Promise<Run> {
  const before = await databaseTime(client);
  const begun = performance.now();
  for (const [table, bytes] of rows) {
    await pipeline(Readable.from([bytes]), client.query(copyFrom(`copy ${table} from stdin (format binary)`)));
  }
  const seconds = (performance.now() - begun) / 1000;
  const database = (((await databaseTime(client)) - before) * 1000) / entries;
  const { rows: counted } = await client.query('select count(*)::integer as entries from change_entry');
  if (counted[0].entries !== entries) throw new Error(`${counted[0].entries} of ${entries} entries were copied`);
  return { entries, seconds, service: 0, database };
}

async function databaseTime(client: pg.Client): Promise<number> {
  return serverTime(parentOf((await client.query('select pg_backend_pid() as pid')).rows[0].pid));
}

async function withDatabase<Result>(work: (client: pg.Client, url: string) => Promise<Result>): Promise<Result> {
  const { url, drop } = await server.create({ template: template.name });
  // So that the writes that the last run left do not count for this run.
  await server.query('checkpoint');
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await work(client, url);
  } finally {
    await client.end();
    await drop();
  }
}
