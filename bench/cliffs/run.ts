import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { benchNow, openBenchDatabase } from '../history/data.ts';
import { Backends, type Cost, costOf, quantile } from '../history/processor-time.ts';
import { findingClasses } from './finding-questions.ts';
import { type Part, type QuestionClass, questionClasses } from './questions.ts';
import { type Service, startService } from './service.ts';

// Questions of kinds that are hard, each asked once: the processor time of Annals over HTTP beside that of plain SQL.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', multiple: true, default: ['750000', '3750000'] },
    state: { type: 'string', multiple: true, default: ['imported', 'analysed'] },
    /** How many questions of a class count, for each page. */
    variants: { type: 'string', default: '5' },
    row: { type: 'string', multiple: true },
    /** One question of a class, the first page, and nothing before it: a new process has the caches of its database empty. */
    cold: { type: 'boolean', default: false },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    out: { type: 'string' },
  },
});

const size = 20;
const tenant = 'big';
const rowColumns = 'at, type, entity, entity_id, name, actor, related, paths';

interface Line {
  row: string;
  page: string;
  matches: number;
  annals: Cost[];
  plain: Cost[];
}

const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line: string) => process.stderr.write(`${line}\n`) });
try {
  const parts: string[] = [];
  for (const entries of settings.entries.map(Number)) {
    for (const state of settings.state) {
      if (state !== 'imported' && state !== 'analysed') throw new Error(`there is no state ${state}`);
      parts.push(await measureHistory(entries, state));
      if (settings.out !== undefined) await writeFile(settings.out, parts.join('\n'));
    }
  }
  process.stdout.write(parts.join('\n'));
} finally {
  await embedded.release();
}

async function measureHistory(entries: number, state: 'imported' | 'analysed'): Promise<string> {
  const source = await openBenchDatabase(embedded.url, entries, state);
  const { rows } = await source.query('select current_database() as name');
  await source.end();
  // The service analyses what needs it: the next run shall find the tables as the import has left them.
  const copy = state === 'imported' ? await copyOf(rows[0].name) : undefined;
  const url = new URL(embedded.url);
  url.pathname = copy ?? rows[0].name;
  const pool = createPool(url.href, { maximum: 2 });
  const service = await startService(url.href, { pool, tenant });
  const client = new pg.Client({ connectionString: url.href, application_name: 'bench' });
  await client.connect();
  try {
    await client.query('set jit = off; set max_parallel_workers_per_gather = 0');
    const lines: Line[] = [];
    for (const each of [...questionClasses(benchNow), ...findingClasses(benchNow)]) {
      if (settings.row !== undefined && !settings.row.some((row) => each.row.includes(row))) continue;
      lines.push(...(await measure(each, service, client)));
    }
    return table(entries, state, lines);
  } finally {
    await client.end();
    await service.stop();
    await pool.end();
    if (copy !== undefined) await onServer(`drop database if exists ${copy} with (force)`);
  }
}

async function copyOf(database: string): Promise<string> {
  const copy = `annals_bench_cliffs_${randomBytes(4).toString('hex')}`;
  await onServer(`create database ${copy} template ${database} strategy file_copy`);
  return copy;
}

async function onServer(statement: string): Promise<void> {
  const server = createPool(embedded.url, { maximum: 1 });
  await server.query(statement);
  await server.end();
}

async function measure(each: QuestionClass, service: Service, client: pg.Client): Promise<Line[]> {
  const backends = new Backends();
  await backends.addClient(client);
  const { cold } = settings;
  const variants = cold ? 1 : Number(settings.variants);
  const lines: Line[] = [];
  let asked = 0;
  for (const part of (each.parts ?? (['first', 'deep'] as const)).slice(0, cold ? 1 : undefined)) {
    const line: Line = { row: each.row, page: part, matches: 0, annals: [], plain: [] };
    // The first two make the code and the tables warm, and do not count.
    for (let number = cold ? 0 : -2; number < variants; number++) {
      const { q, where } = each.variant(asked++);
      // A count first would make the plain table warm.
      const known = cold ? undefined : await countOf(client, where);
      if ((part === 'deep' || part === 'last') && known !== undefined && known <= size) break;
      const page = pageOf(part, known ?? 0);
      const { answer, cost } = await service.ask(resourceOf(part, page), q);
      const plain = await costOf(backends, () => askPlain(client, part, where, (page - 1) * size));
      const total = known ?? (await countOf(client, where));
      if (answer.total !== total) throw new Error(`${q}: ${answer.total}, and ${total} by counting`);
      const items = part === 'histogram' || part === 'facets' ? 0 : Math.min(size, total - (page - 1) * size);
      if (answer.items.length !== items) throw new Error(`${q}: half a page`);
      if (number < 0) continue;
      line.matches = total;
      line.annals.push(cost);
      line.plain.push(plain);
    }
    if (line.annals.length === 0) continue;
    lines.push(line);
    process.stderr.write(
      `${each.row}, ${part}: ${median(line.annals).toFixed(1)} ms, plain ${median(line.plain).toFixed(1)} ms\n`,
    );
  }
  return lines;
}

function pageOf(part: Part, total: number): number {
  const pages = Math.max(1, Math.ceil(total / size));
  if (part === 'last') return pages;
  return part === 'deep' ? Math.max(1, Math.ceil(pages / 2)) : 1;
}

function resourceOf(part: Part, page: number): string {
  if (part === 'histogram') return 'histogram?buckets=60';
  return part === 'facets' ? 'facets?field=path' : `changelogs?page=${page}&size=${size}`;
}

async function countOf(client: pg.Client, where: string): Promise<number> {
  const { rows } = await client.query(`select count(*)::float8 as total from plain where tenant = $1 and ${where}`, [
    tenant,
  ]);
  return rows[0].total;
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
    await client.query(`select ${rowColumns} ${entries} order by at desc, id desc limit $2 offset $3`, [
      tenant,
      size,
      skip,
    ]);
  }
}

function median(costs: readonly Cost[]): number {
  return quantile(
    costs.map(({ service, database }) => service + database),
    0.5,
  );
}

function table(entries: number, state: string, lines: readonly Line[]): string {
  const bare = Math.min(...lines.filter(({ row }) => row === 'bare request').map(({ annals }) => median(annals)));
  const rows = lines.map(({ row, page, matches, annals, plain }) => {
    const part = (of: (cost: Cost) => number) => quantile(annals.map(of), 0.5).toFixed(1);
    const allowed = 1.2 * median(plain) + (Number.isFinite(bare) ? bare : 0);
    const clockOf = (costs: readonly Cost[]) =>
      quantile(
        costs.map(({ clock }) => clock),
        0.5,
      ).toFixed(1);
    const worst = Math.max(...annals.map(({ service, database }) => service + database)).toFixed(1);
    return (
      `| ${row} | ${matches.toLocaleString('en')} | ${page} | ${median(annals).toFixed(1)} (${worst}) | ` +
      `${part(({ service }) => service)} | ${part(({ database }) => database)} | ${median(plain).toFixed(1)} | ` +
      `${(median(annals) / allowed).toFixed(2)} | ${clockOf(annals)} | ${clockOf(plain)} |`
    );
  });
  return (
    `${entries.toLocaleString('en')} entries, 80 % of them of the tenant, ${state}${settings.cold ? ', cold' : ''}\n\n` +
    '| question | matches | page | Annals, ms of processor time (worst) | of it service | of it database | plain SQL, ms of processor time | Annals / (1.2 plain + bare) | Annals, ms by the clock | plain SQL, ms by the clock |\n' +
    `|---|---:|---|---:|---:|---:|---:|---:|---:|---:|\n${rows.join('\n')}\n`
  );
}
