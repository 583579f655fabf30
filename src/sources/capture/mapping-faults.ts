import type { PathPattern } from '../../core/path-pattern.ts';
import { type CatalogueTable, plainTable } from '../../postgres/source/source-catalogue.ts';
import {
  columnsOfWho,
  type FormerColumns,
  keyColumns,
  type Mapping,
  maskedColumns,
  nameToday,
  type TableMapping,
} from '../../recording/mapping/mapping.ts';
import { type TableFault, tableFaults } from './table-faults.ts';

/** The columns against which a mapping is checked. */
interface CheckedColumns {
  /** The columns at the checked position of the log. Default: the current ones. */
  readonly logged?: readonly string[];
  /** The columns at the last check. Undefined: capture does not know the table yet. */
  readonly known: readonly string[] | undefined;
}

/** Why a table cannot be captured; empty if it can. `publication`: that of capture. */
export function faultsOfTable(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  { known, publication }: { known?: readonly string[] | undefined; publication: string },
): TableFault[] {
  const unfit = mappingFaults(mapping, table, catalogue, known).map((message) => ({ message }));
  // The other checks need these columns and the key.
  return unfit.length > 0
    ? unfit
    : tableFaults(catalogue, keyColumns(mapping, table, catalogue.primaryKey), publication);
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
    ...masksIntoText(table, catalogue).map(
      (column) => `${name}: a mask leads into the column ${column}, whose values are text: mask the whole column`,
    ),
    ...maskedColumns(table, id).map((column) => `${name}: the column ${column} is of its id and cannot be masked`),
  ];
}

/** Text columns into which a mask leads: it would protect nothing. */
function masksIntoText({ rules }: TableMapping, { columns }: CatalogueTable): string[] {
  const texts = new Set(columns.flatMap(({ name, isText }) => (isText ? [name] : [])));
  const inside = rules.mask.flatMap(({ keys: [column, ...rest] }) => (rest.length === 0 ? [] : (column ?? [])));
  return [...new Set(inside)].filter((column) => texts.has(column));
}

/**
 * Columns that the mapping names and the table does not, or no longer, have. A mask of a missing column protects
 * nothing.
 */
export function lostColumns(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  { logged, known }: CheckedColumns,
): string[] {
  const now = loggedColumns(catalogue);
  // Generated columns are not in the log, so a rule for them hides nothing.
  const computed = new Set(catalogue.columns.flatMap(({ name, isGenerated }) => (isGenerated ? [name] : [])));
  const lost = uses(mapping, table, catalogue, known).filter(([_use, column]) => {
    if (computed.has(column) && known?.includes(column) !== true) return false;
    return isLost(column, table.former, { logged: logged ?? now, now, known });
  });
  // A column may be uncertain only because another one is gone.
  const gone = lost.filter(([_use, column]) => !now.includes(column));
  return (gone.length > 0 ? gone : lost).map(([use, column]) => {
    const message = `${plainTable(catalogue)} has no column ${column} (${use})`;
    if (logged === undefined && known === undefined) return message;
    return (
      `${message} any more, or it is another one. Say in "former" of this table what became of it: ` +
      `{"${column}": "the name that it has now"}, or {"${column}": null} where it was dropped. ` +
      'Where a column before it was dropped, say that of the other column'
    );
  });
}

/** The names of logged columns, in order. */
function loggedColumns({ columns }: Pick<CatalogueTable, 'columns'>): string[] {
  return columns.flatMap(({ name, isGenerated }) => (isGenerated ? [] : [name]));
}

/**
 * The columns that the mapping names, with their use. The rules of an entity apply to other documents too, so they may
 * name columns that this table never had.
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
    ...columnsOfWho(table.who),
    ...columnsOfWho(table.transactionActor).map(([part, column]): [string, string] => [
      part === 'actor' ? 'transactionActor' : `transactionActor.${part}`,
      column,
    ]),
    ['correlationId', table.correlationId?.column],
    ['schemaVersion', table.schemaVersion?.column],
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

/** Names of columns in table order, without generated ones. See `CheckedColumns`. */
interface ColumnLists {
  readonly logged: readonly string[];
  readonly now: readonly string[];
  readonly known: readonly string[] | undefined;
}

/**
 * Whether a column was renamed or dropped without the mapping saying so: its values would escape its rules. A renamed
 * column keeps its place and a new one comes last, so a column after an unknown name is new even if its name is known.
 * Undetected: a column is dropped and another takes its name between two checks.
 */
export function isLost(column: string, former: FormerColumns, lists: ColumnLists): boolean {
  const today = nameToday(former, column);
  if (former.dropped.has(today)) return false;
  const logged = namesToday(lists.logged, former);
  const known = lists.known && namesToday(lists.known, former);
  if (known?.includes(today) ? retainedOf(logged, known).includes(today) : logged.includes(today)) return false;
  // The log may be older than the column: the table has got columns since, and no new name.
  const isOlder = isBeginning(logged, namesToday(lists.now, former)) && lists.now.includes(today);
  return !(isOlder && (known === undefined || !known.includes(today) || isBeginning(logged, known)));
}

/** Current names of the columns, without dropped ones. */
function namesToday(columns: readonly string[], former: FormerColumns): string[] {
  return columns.map((column) => nameToday(former, column)).filter((column) => !former.dropped.has(column));
}

/**
 * The known columns that the table still has. With another name behind and a known one missing, columns may have been
 * renamed: then only those with the same predecessors are certain.
 */
function retainedOf(logged: readonly string[], known: readonly string[]): readonly string[] {
  const retained = inOrder(logged, known);
  if (retained.length === logged.length || retained.length === known.length) return retained;
  const end = logged.findIndex((column, index) => known[index] !== column);
  return logged.slice(0, end);
}

/** The longest prefix of known columns in their order. */
function inOrder(logged: readonly string[], known: readonly string[]): readonly string[] {
  let index = -1;
  const end = logged.findIndex((column) => {
    const next = known.indexOf(column);
    const isNew = next <= index;
    index = next;
    return isNew;
  });
  return end === -1 ? logged : logged.slice(0, end);
}

function isBeginning(columns: readonly string[], all: readonly string[]): boolean {
  return columns.every((column, index) => all[index] === column);
}
