import type pg from 'pg';
import { type CatalogueTable, readCatalogue } from '../db/source/source-catalogue.ts';
import { stringOf } from '../json/members.ts';
import { parseJson } from '../json/parse.ts';
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

const instant = 1184;
const instants = 1185;
const oid = 26;

function relayedTable({ columns, primaryKey }: CatalogueTable, types: PostgresTypes): RelayedTable {
  const typeOf = new Map(columns.map(({ name, type }) => [name, type]));
  return {
    primaryKey,
    value(column, json) {
      const type = typeOf.get(column);
      if (type === undefined || json === 'null') return json;
      if (type === instant || type === instants) return json.replaceAll('+00:00"', 'Z"');
      if (type === oid) return json.replaceAll('"', '');
      // An array of composite values came as PostgreSQL's text.
      if (json.startsWith('"')) {
        const text = stringOf(parseJson(json));
        if (text?.startsWith('{') && types.text(type, text).startsWith('[')) return types.text(type, text);
      }
      return json;
    },
  };
}
