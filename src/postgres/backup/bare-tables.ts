import pg from 'pg';
import { readIndexes } from './backed-up-tables.ts';

/**
 * Empties tables and takes away their foreign keys and the indexes that no constraint needs: rows come in any order then,
 * and an index is built in one go. The returned function puts them back.
 */
export async function bareTables(client: pg.ClientBase, tables: readonly string[]): Promise<() => Promise<void>> {
  const { rows: keys } = await client.query<{ table: string; name: string; definition: string }>(
    `select c.relname as "table", o.conname as name, pg_get_constraintdef(o.oid, true) as definition
       from pg_constraint o join pg_class c on c.oid = o.conrelid
       where o.contype = 'f' and c.relnamespace = current_schema()::regnamespace order by c.relname, o.conname`,
  );
  const indexes = await readIndexes(client, tables);
  for (const { table, name } of keys) {
    await client.query(`alter table ${pg.escapeIdentifier(table)} drop constraint ${pg.escapeIdentifier(name)}`);
  }
  for (const { name } of indexes) await client.query(`drop index ${pg.escapeIdentifier(name)}`);
  await client.query(`truncate ${tables.map((name) => pg.escapeIdentifier(name)).join(', ')}`);
  return async () => {
    for (const { definition } of indexes) await client.query(definition);
    for (const { table, name, definition } of keys) {
      await client.query(
        `alter table ${pg.escapeIdentifier(table)} add constraint ${pg.escapeIdentifier(name)} ${definition}`,
      );
    }
  };
}
