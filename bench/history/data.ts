import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { foldHistory } from '../../src/changelog/fold/fold.ts';
import { createDatabase } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createPool } from '../../src/db/pool.ts';

export const benchTenants = ['big', 'middle', 'little'];
/** The moment that the benchmark takes for now; all entries are in the 60 days before. */
export const benchNow = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

/**
 * A database with so many entries, made where it is not there yet. `url` names the database of the server to connect
 * to; the answer's is another one on it.
 */
export async function openBenchDatabase(url: string, entries: number): Promise<pg.Pool> {
  const name = `annals_bench_${entries}`;
  const server = createPool(url);
  const target = new URL(url);
  target.pathname = name;
  try {
    const { rows } = await server.query('select from pg_database where datname = $1', [name]);
    if (rows.length === 0) {
      await server.query(`drop database if exists ${name}_draft`);
      await server.query(`create database ${name}_draft`);
      target.pathname = `${name}_draft`;
      await fill(target.href, entries);
      await server.query(`alter database ${name}_draft rename to ${name}`);
      target.pathname = name;
    }
  } finally {
    await server.end();
  }
  return createPool(target.href, { maximum: 20 });
}

async function fill(url: string, entries: number): Promise<void> {
  const pool = createPool(url, { maximum: 2 });
  const db = createDatabase(pool);
  const tell = (what: string, begun: number) =>
    process.stderr.write(`${entries} entries: ${what} in ${((performance.now() - begun) / 1000).toFixed(1)} s\n`);
  try {
    await migrate(pool);
    for (const tenant of benchTenants) await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
    let begun = performance.now();
    const text = await readFile(join(import.meta.dirname, 'data.sql'), 'utf8');
    await pool.query(text.replaceAll('$entries', String(entries)).replaceAll('$now', String(benchNow)));
    tell('written', begun);
    begun = performance.now();
    for (const tenant of benchTenants) await foldHistory(db, tenant);
    tell('folded', begun);
    begun = performance.now();
    for (const table of ['plain', 'change_entry', 'change_related', 'change_tally', 'change_kind', 'change_actor']) {
      await pool.query(`vacuum (analyze) ${table}`);
    }
    await pool.query('checkpoint');
    tell('vacuumed', begun);
  } finally {
    await db.destroy();
  }
}
