import type { CatalogueTable } from '../../postgres/source/source-catalogue.ts';
import { plainTable } from '../../postgres/source/table-names.ts';
import { nameToday } from '../../recording/mapping/former-columns.ts';
import { keyColumns, type Mapping, type TableMapping } from '../../recording/mapping/mapping.ts';
import { maskedColumns } from '../../recording/mapping/masked-columns.ts';
import type { PathPattern } from '../../recording/mapping/path-pattern.ts';
import { isLost } from './lost-columns.ts';
import { type TableFault, tableFaults } from './table-faults.ts';

/** The columns of a table, by which its mapping is checked. */
export interface CheckedColumns {
  /** At the moment of the log that is checked; left out: now. */
  readonly found?: readonly string[];
  /** When capture looked last. Undefined: capture does not know this table yet. */
  readonly known: readonly string[] | undefined;
}

/** Why a table cannot be captured as the mapping says, empty where it can: its columns, and whether it can be published. */
export function faultsOfTable(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  known?: readonly string[],
): TableFault[] {
  const unfit = mappingFaults(mapping, table, catalogue, known).map((message) => ({ message }));
  // Without these columns or the key, the other checks have no meaning.
  return unfit.length > 0 ? unfit : tableFaults(catalogue, keyColumns(mapping, table, catalogue.primaryKey));
}

function mappingFaults(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  known: readonly string[] | undefined,
): string[] {
  const name = plainTable(catalogue);
  const id = table.id ?? catalogue.primaryKey;
  return [
    ...lostColumns(mapping, table, catalogue, { known }),
    ...(id.length === 0 ? [`${name} has no primary key, and the mapping names no id for it`] : []),
    ...maskedColumns(table, id).map((column) => `${name}: the column ${column} is of its id and cannot be masked`),
  ];
}

/** Where a table's mapping names columns that the table does not have, or no longer. A mask of a missing column protects nothing. */
export function lostColumns(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  { found, known }: CheckedColumns,
): string[] {
  const now = loggedColumns(catalogue);
  // What is computed is not in the log, so a rule for it has nothing to hide.
  const computed = new Set(catalogue.columns.flatMap(({ name, isGenerated }) => (isGenerated ? [name] : [])));
  return uses(mapping, table, catalogue, known).flatMap(([use, column]) => {
    const wasKnown = known?.includes(column) === true;
    if (computed.has(column) && !wasKnown) return [];
    if (!isLost(column, table.former, { found: found ?? now, now, known })) return [];
    const message = `${plainTable(catalogue)} has no column ${column} (${use})`;
    if (found === undefined && known === undefined) return [message];
    return [
      `${message} any more, or it is another one. Say in "former" of this table what became of it: ` +
        `{"${column}": "the name that it has now"}, or {"${column}": null} where it was dropped. ` +
        'Where a column before it was dropped, say that of the other column',
    ];
  });
}

/** The names of the columns that the log has, in their order. */
function loggedColumns({ columns }: Pick<CatalogueTable, 'columns'>): string[] {
  return columns.flatMap(({ name, isGenerated }) => (isGenerated ? [] : [name]));
}

/**
 * The columns that the mapping names, each with its use. The rules of an entity apply to other documents too, so they may name columns that
 * this table never had.
 */
function uses(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  known: readonly string[] | undefined,
): [use: string, column: string][] {
  const firstKeys = (patterns: readonly PathPattern[]) => patterns.map(({ keys }) => keys[0] ?? undefined);
  const named: [string, string | undefined][] = [
    ['tenant', mapping.tenant?.kind === 'column' ? mapping.tenant.column : undefined],
    ...(table.id ?? catalogue.primaryKey).map((column): [string, string] => ['id', column]),
    ['name', table.name],
    ['actor', table.actor],
    ['transactionActor', table.transactionActor],
    ['schemaVersion', table.schemaVersion?.kind === 'column' ? table.schemaVersion.column : undefined],
    ...table.related.flatMap(({ id }) => id.map((column): [string, string] => ['related', column])),
    ...[...new Set([...table.json].map((column) => nameToday(table.former, column)))].map(
      (column): [string, string] => ['json', column],
    ),
    ...[...table.context.values()].map((column): [string, string] => ['context', column]),
    ...firstKeys(table.own.ignore).map((column): [string, string | undefined] => ['ignore', column]),
    ...firstKeys(table.own.mask).map((column): [string, string | undefined] => ['mask', column]),
  ];
  const { mask = [], ignore = [] } = mapping.entities.get(table.entity) ?? {};
  const ever = new Set([...(known ?? []), ...loggedColumns(catalogue)]);
  for (const [use, patterns] of Object.entries({ ignore, mask })) {
    for (const column of firstKeys(patterns)) if (column !== undefined && ever.has(column)) named.push([use, column]);
  }
  return named.flatMap(([use, column]) => (column === undefined ? [] : [[use, column]]));
}
