import type { CatalogueTable } from '../db/source/source-catalogue.ts';
import { plainTable } from '../db/source/table-names.ts';
import { keyColumns, type Mapping, type TableMapping } from '../recording/mapping/mapping.ts';
import { maskedColumns } from '../recording/mapping/masked-columns.ts';
import { type TableFault, tableFaults } from './table-faults.ts';

/** Why a table cannot be captured as the mapping says, empty where it can: its columns, and whether it can be published. */
export function faultsOfTable(mapping: Mapping, table: TableMapping, catalogue: CatalogueTable): TableFault[] {
  const unfit = mappingFaults(mapping, table, catalogue).map((message) => ({ message }));
  // Without these columns or the key, the other checks have no meaning.
  return unfit.length > 0 ? unfit : tableFaults(catalogue, keyColumns(mapping, table, catalogue.primaryKey));
}

/** Where a table's mapping names columns that the table does not have. A mask of a missing column protects nothing. */
function mappingFaults(mapping: Mapping, table: TableMapping, catalogue: CatalogueTable): string[] {
  const name = plainTable(catalogue);
  const columns = catalogue.columns.map((column) => column.name);
  const known = new Set(columns);
  const unknown = uses(mapping, table).filter(([, column]) => !known.has(column));
  const id = table.id ?? catalogue.primaryKey;
  return [
    ...unknown.map(([use, column]) => `${name} has no column ${column} (${use})`),
    ...(id.length === 0 ? [`${name} has no primary key, and the mapping names no id for it`] : []),
    ...maskedColumns(table, id).map((column) => `${name}: the column ${column} is of its id and cannot be masked`),
  ];
}

/**
 * The columns that the mapping names, each with its use. The paths of an entity apply to other documents too, so they
 * may name columns that this table lacks.
 */
function uses(mapping: Mapping, table: TableMapping): [use: string, column: string][] {
  const named: [string, string | undefined][] = [
    ['tenant', mapping.tenant?.kind === 'column' ? mapping.tenant.column : undefined],
    ...(table.id ?? []).map((column): [string, string] => ['id', column]),
    ['name', table.name],
    ['actor', table.actor],
    ['schemaVersion', table.schemaVersion?.kind === 'column' ? table.schemaVersion.column : undefined],
    ...table.related.flatMap(({ id }) => id.map((column): [string, string] => ['related', column])),
    ...[...table.json].map((column): [string, string] => ['json', column]),
    ...[...table.context.values()].map((column): [string, string] => ['context', column]),
    ...table.own.ignore.map(({ keys }): [string, string | undefined] => ['ignore', keys[0] ?? undefined]),
    ...table.own.mask.map(({ keys }): [string, string | undefined] => ['mask', keys[0] ?? undefined]),
  ];
  return named.flatMap(([use, column]) => (column === undefined ? [] : [[use, column]]));
}
