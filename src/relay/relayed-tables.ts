import type pg from 'pg';
import { type CatalogueTable, readCatalogue } from '../db/source/source-catalogue.ts';
import type { Mapping } from '../recording/mapping/mapping.ts';
import { PostgresTypes } from '../recording/mapping/postgres-types.ts';
import type { RelayedTable } from './outbox-changes.ts';

/**
 * The mapped tables of the source, with what makes the triggers' JSON equal to what capture records. PostgreSQL's own JSON of a value
 * differs from the table of values for a few types.
 */
export async function readRelayedTables(
  client: pg.Client,
  mapping: Mapping,
): Promise<ReadonlyMap<string, RelayedTable>> {
  const catalogue = await readCatalogue(client, [...mapping.tables.keys()]);
  const types = new PostgresTypes(client);
  await types.load([...catalogue.values()].flatMap(({ columns }) => columns.map(({ type }) => type)));
  return new Map([...catalogue].map(([name, table]) => [name, relayedTable(table, types)]));
}

function relayedTable({ columns, primaryKey }: CatalogueTable, types: PostgresTypes): RelayedTable {
  const typeOf = new Map(columns.map(({ name, type }) => [name, type]));
  return {
    primaryKey,
    value(column, json) {
      const type = typeOf.get(column);
      return type === undefined || json === 'null' ? json : types.ofJson(type, json);
    },
  };
}
