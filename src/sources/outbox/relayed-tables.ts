import type { CatalogueTable } from '../../postgres/source/source-catalogue.ts';
import type { PostgresTypes } from '../../recording/mapping/postgres-types.ts';

/** A mapped table of the source. */
export interface RelayedTable {
  readonly primaryKey: readonly string[];
  /** JSON text as the trigger wrote it becomes JSON text as capture writes it. */
  value(column: string, json: string): string;
}

/** The table with what makes the triggers' JSON equal to what capture records. PostgreSQL's own JSON of a value differs for a few types. */
export function relayedTable({ columns, primaryKey }: CatalogueTable, types: PostgresTypes): RelayedTable {
  const typeOf = new Map(columns.map(({ name, type }) => [name, type]));
  return {
    primaryKey,
    value(column, json) {
      const type = typeOf.get(column);
      return type === undefined || json === 'null' ? json : types.ofJson(type, json);
    },
  };
}
