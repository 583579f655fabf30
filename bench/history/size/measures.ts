import { readdirSync, readFileSync } from 'node:fs';
import type pg from 'pg';

/** Bytes of a table by part: its rows (with TOAST and maps) and each index. */
export type SizesOfTables = Record<string, { rows: number; indexes: Record<string, number> }>;

/** The tables and indexes that hold data of the history. */
export async function tableSizes(pool: pg.Pool): Promise<SizesOfTables> {
  const { rows } = await pool.query<{ table: string; rows: number; index: string | null; bytes: number | null }>(
    `select t.relname as "table", pg_table_size(t.oid)::float8 as rows, i.relname as index, pg_relation_size(i.oid)::float8 as bytes
       from pg_class t left join pg_index x on x.indrelid = t.oid left join pg_class i on i.oid = x.indexrelid
      where t.relnamespace = 'public'::regnamespace and t.relkind = 'r' and t.relname like 'change\\_%' order by 1, 3`,
  );
  const sizes: SizesOfTables = {};
  for (const { table, rows: ofRows, index, bytes } of rows) {
    sizes[table] ??= { rows: ofRows, indexes: {} };
    if (index !== null && bytes !== null) sizes[table].indexes[index] = bytes;
  }
  return sizes;
}

export async function walPosition(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as bytes");
  return rows[0].bytes;
}

/** The process of the server that starts all others. It must run on this machine. */
export async function postmasterOf(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query('select pg_backend_pid() as id');
  return Number(statOf(rows[0].id)[parentField]);
}

// Fields of /proc/PID/stat after the name, counted from 0.
const parentField = 1;
const ownFields = [11, 12];
const childrenFields = [13, 14];
// Linux gives these times in ticks of 10 ms, whatever the kernel's own clock.
const millisecondsOfTick = 10;

/** Milliseconds of processor time of the server so far: of the processes that run, and of those that have ended. */
export function serverMilliseconds(postmaster: number): number {
  const own = ticks(statOf(postmaster), [...ownFields, ...childrenFields]);
  const children = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(name))
    .filter((fields) => Number(fields[parentField]) === postmaster)
    .reduce((sum, fields) => sum + ticks(fields, ownFields), 0);
  return (own + children) * millisecondsOfTick;
}

/** Milliseconds of processor time of this process's children that have ended. */
export function endedChildrenMilliseconds(): number {
  return ticks(statOf('self'), childrenFields) * millisecondsOfTick;
}

function ticks(fields: readonly string[], of: readonly number[]): number {
  return of.reduce((sum, field) => sum + Number(fields[field] ?? 0), 0);
}

/** The fields after the name; none if the process has ended. */
function statOf(id: number | string): string[] {
  try {
    const text = readFileSync(`/proc/${id}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}
