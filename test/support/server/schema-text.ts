import type pg from 'pg';
import { readTableLines, type TableLine } from '../../../src/postgres/schema/adopt-database.ts';

interface Header {
  header: string;
}

// What the catalogue says of a routine; its body is the file, of which the hash stands for it.
const headers = `
  select case p.prokind when 'a' then 'aggregate ' when 'p' then 'procedure ' else 'function ' end
           || p.proname || '(' || pg_get_function_arguments(p.oid) || ')'
           || coalesce(' returns ' || pg_get_function_result(p.oid), '')
           || ' language ' || l.lanname
           || case p.provolatile when 'i' then ' immutable' when 's' then ' stable' else '' end
           || case when p.proisstrict then ' strict' else '' end
           || case p.proparallel when 's' then ' parallel safe' when 'r' then ' parallel restricted' else '' end
           || ' cost ' || p.procost || case when p.prorows > 0 then ' rows ' || p.prorows else '' end
           || coalesce(' set ' || array_to_string(p.proconfig, ' set '), '')
           || ' body ' || left(encode(sha256(convert_to(p.prosrc, 'UTF8')), 'hex'), 16) as header
    from pg_proc p join pg_language l on l.oid = p.prolang
    where p.pronamespace = current_schema()::regnamespace
    order by p.proname collate "C", pg_get_function_arguments(p.oid) collate "C"`;

/** The schema of a database as a text that is the same wherever the schema is. Indexes of operators may be left out. */
export async function schemaText(pool: pg.Pool, { leaveOut = [] }: { leaveOut?: string[] } = {}): Promise<string> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ oid: number }>('select current_schema()::regnamespace::oid::bigint as oid');
    const lines = await readTableLines(client, rows[0]?.oid ?? 0);
    const kept = lines.filter(({ line }) => !leaveOut.some((name) => line.includes(name)));
    const routines = await client.query<Header>(headers);
    return `${[...tables(kept), ...routines.rows.map(({ header }) => header)].join('\n')}\n`;
  } finally {
    client.release();
  }
}

function tables(lines: readonly TableLine[]): string[] {
  return lines.map(({ kind, line }) => (kind === 'table' ? `\n${line}` : `  ${line}`));
}
