import { existsSync } from 'node:fs';
import { appendFile, mkdir, readFile, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { buildHistoryIndexes } from '../../src/history/tallies/statistics.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { askAll } from './size/ask.ts';
import { importPeriod } from './size/grow.ts';
import { tableSizes } from './size/measures.ts';
import { report, type Step } from './size/report.ts';
import { copiesOfLine, periodLength, writeTemplate } from './size/template-lines.ts';

// How much one server holds: a tenant that grows by `annals import`, period after period, with what each entry costs in bytes
// and processor time, and what queries cost at some sizes. A run that was cut off goes on after its last whole period.
const { values: settings } = parseArgs({
  options: {
    periods: { type: 'string', default: '20' },
    /** Changes in one period of 90 days. */
    lines: { type: 'string', default: '1000000' },
    /** After how many periods queries are asked. */
    ask: { type: 'string', multiple: true, default: ['1', '5', '20'] },
    times: { type: 'string', default: '30' },
    /** Ends, and asks, before the disk has less room than this, in GiB. */
    room: { type: 'string', default: '10' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});

const tenant = 'shop';
const periods = Number(settings.periods);
const lastMoment = Date.UTC(2026, 8, 15, 12);
const template = join(settings.data, `size-template-${settings.lines}.txt`);
const stepsFile = join(settings.data, 'size-steps.ndjson');
const askedAfter = new Set(settings.ask.map(Number));
let stopping = false;
process.on('SIGTERM', () => {
  stopping = true;
});

await mkdir(settings.data, { recursive: true });
if (!existsSync(template)) await writeTemplate(template, Number(settings.lines) / copiesOfLine);
const embedded = await openEmbeddedDatabase({
  dataDir: settings.data,
  log: (line) => process.stderr.write(`${line}\n`),
});
const pool = createPool(embedded.url, { maximum: 2 });
try {
  await prepare(pool);
  const steps = await doneSteps();
  while (steps.length < periods && !stopping) {
    const last = steps.length + 1 === periods || !(await hasRoom());
    const step = await grow(steps, last);
    steps.push(step);
    await appendFile(stepsFile, `${JSON.stringify(step)}\n`);
    process.stderr.write(`${report(steps.slice(-1))}\n`);
    if (last) break;
  }
  process.stdout.write(`${report(steps)}\n${JSON.stringify(await meanEntry(pool))}\n`);
} finally {
  await pool.end();
  await embedded.release();
}

async function prepare(on: pg.Pool): Promise<void> {
  await migrate(on);
  await on.query('insert into tenant (tenant) values ($1) on conflict do nothing', [tenant]);
  // The service builds them at its start, so that no import finds them missing.
  const db = createDatabase(createPool(embedded.url, { maximum: 2 }));
  await buildHistoryIndexes(db);
  await db.destroy();
}

async function doneSteps(): Promise<Step[]> {
  if (!existsSync(stepsFile)) return [];
  const text = await readFile(stepsFile, 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line): Step => JSON.parse(line));
}

async function grow(steps: readonly Step[], last: boolean): Promise<Step> {
  const number = steps.length + 1;
  const end = lastMoment - (periods - number) * periodLength;
  const growth = await importPeriod(
    { url: embedded.url, pool, tenant },
    { template, number, start: end - periodLength },
  );
  const entries = (steps.at(-1)?.entries ?? 0) + growth.recorded;
  const sizes = await tableSizes(pool);
  if (!last && !stopping && !askedAfter.has(number)) return { entries, growth, sizes };
  const asked = await askAll({ url: embedded.url, tenant, now: end }, { entries, times: Number(settings.times) });
  return { entries, growth, sizes, asked };
}

async function hasRoom(): Promise<boolean> {
  const { bavail, bsize } = await statfs(settings.data);
  return (bavail * bsize) / 1024 ** 3 > Number(settings.room);
}

/** The mean of what an entry has, over a sample. */
async function meanEntry(on: pg.Pool): Promise<unknown> {
  const { rows } = await on.query(
    `select round(avg(octet_length(paths))) as "bytesOfPaths", round(avg(pg_column_size(paths))) as "bytesOfPathsStored",
            round(avg(coalesce(octet_length(related), 0))) as "bytesOfRelated", round(avg(pg_column_size(e))) as "bytesOfRow"
       from change_entry e tablesample system (0.5)`,
  );
  return rows[0];
}
