import type pg from 'pg';
import { type Doing, places } from '../../../src/history/erasure/places.ts';

const searched: readonly Doing[] = ['text', 'row', 'clear'];

/**
 * Writes a text of these words into each column that an erasure searches, a row for each, with no regard to other
 * tables: constraints that would not have it are dropped. Returns the columns.
 */
export async function plantCanaries(pool: pg.Pool, tenant: string, words: readonly string[]): Promise<string[]> {
  // References to other tables and checks of values are not what is tried here.
  const { rows: constraints } = await pool.query(
    `select format('alter table %s drop constraint %I', conrelid::regclass, conname) as statement from pg_constraint
       where contype in ('f', 'c') and confrelid <> 'job'::regclass and connamespace = 'public'::regnamespace`,
  );
  for (const { statement } of constraints) await pool.query(statement);
  const { rows } = await pool.query<{ table: string; column: string; type: string; needed: boolean }>(
    `select c.relname as "table", a.attname as "column", format_type(a.atttypid, null) as type,
            a.attnotnull and not a.atthasdef and a.attidentity = '' as needed
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace`,
  );
  const client = await pool.connect();
  const planted: string[] = [];
  try {
    await client.query('begin');
    for (const [table, columns] of Object.entries(places)) {
      const ofTable = rows.filter((row) => row.table === table);
      for (const [column, [does]] of Object.entries(columns)) {
        if (!searched.includes(does)) continue;
        planted.push(`${table}.${column}`);
        const unique = String(planted.length);
        const written = ofTable.filter((one) => one.needed || one.column === column);
        const values = written.map((one) =>
          one.column === 'tenant'
            ? tenant
            : one.column === column
              ? canaryFor(one, words, unique)
              : fixedOf(one, unique),
        );
        const names = written.map((one) => `"${one.column}"`).join(', ');
        await client.query(
          `insert into ${table} (${names}) values (${values.map((_value, index) => `$${index + 1}`).join(', ')})`,
          values,
        );
      }
    }
    await client.query('commit');
  } finally {
    client.release();
  }
  return planted;
}

interface Column {
  readonly table: string;
  readonly column: string;
  readonly type: string;
}

function canaryFor({ column, type }: Column, words: readonly string[], unique: string): string {
  const query = words.map((word) => `actor:${JSON.stringify(word)} and ${unique}`).join(' and ');
  if (type === 'json' || type === 'jsonb') return JSON.stringify({ id: unique, q: query, of: words });
  if (type === 'text' && /document|exchange|input|counted|call/.test(column))
    return JSON.stringify({ id: unique, q: query });
  if (type === 'text') return `${words.join(' ')} ${unique}`;
  throw new Error(`no canary for ${column} ${type}`);
}

/** Values that a check of the table requires, or any that contain none of the words. */
function fixedOf({ table, column, type }: Column, unique: string): unknown {
  if (table === 'job' && column === 'type') return 'AGENT_CHAT';
  if (table === 'job' && column === 'status') return 'success';
  if (table === 'agent_turn' && column === 'state') return 'answered';
  if (table === 'agent_turn' && column === 'position') return Number(unique);
  if (type === 'text[]') return '{}';
  if (type === 'bytea') return Buffer.from(unique);
  if (type === 'uuid') return `00000000-0000-4000-8000-${unique.padStart(12, '0')}`;
  if (type.startsWith('json')) return '{}';
  if (type.startsWith('timestamp')) return new Date();
  if (type === 'boolean') return false;
  return type === 'text' ? `u${unique}` : 1;
}
