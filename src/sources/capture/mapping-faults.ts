import type { PathPattern } from '../../core/path-pattern.ts';
import { type CatalogueTable, plainTable } from '../../postgres/source/source-catalogue.ts';
import {
  type FormerColumns,
  keyColumns,
  type Mapping,
  maskedColumns,
  nameToday,
  type TableMapping,
} from '../../recording/mapping/mapping.ts';
import { type TableFault, tableFaults } from './table-faults.ts';

/** The columns of a table, by which its mapping is checked. */
export interface CheckedColumns {
  /** At the moment of the log that is checked; left out: now. */
  readonly logged?: readonly string[];
  /** When capture looked last. Undefined: capture does not know this table yet. */
  readonly known: readonly string[] | undefined;
}

/**
 * Why a table cannot be captured as the mapping says, empty where it can: its columns, and whether `publication`, that of capture, can
 * have it.
 */
export function faultsOfTable(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  { known, publication }: { known?: readonly string[] | undefined; publication: string },
): TableFault[] {
  const unfit = mappingFaults(mapping, table, catalogue, known).map((message) => ({ message }));
  // Without these columns or the key, the other checks have no meaning.
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

/** The columns without members in their values into which a mask leads nevertheless. It would protect nothing. */
function masksIntoText({ rules }: TableMapping, { columns }: CatalogueTable): string[] {
  const texts = new Set(columns.flatMap(({ name, isText }) => (isText ? [name] : [])));
  const inside = rules.mask.flatMap(({ keys: [column, ...rest] }) => (rest.length === 0 ? [] : (column ?? [])));
  return [...new Set(inside)].filter((column) => texts.has(column));
}

/** Where a table's mapping names columns that the table does not have, or no longer. A mask of a missing column protects nothing. */
export function lostColumns(
  mapping: Mapping,
  table: TableMapping,
  catalogue: CatalogueTable,
  { logged, known }: CheckedColumns,
): string[] {
  const now = loggedColumns(catalogue);
  // What is computed is not in the log, so a rule for it has nothing to hide.
  const computed = new Set(catalogue.columns.flatMap(({ name, isGenerated }) => (isGenerated ? [name] : [])));
  const lost = uses(mapping, table, catalogue, known).filter(([_use, column]) => {
    if (computed.has(column) && known?.includes(column) !== true) return false;
    return isLost(column, table.former, { logged: logged ?? now, now, known });
  });
  // A column of this name may be uncertain only because another one is gone.
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

/** Names of columns, in the order of the table, without those that PostgreSQL computes. */
interface ColumnLists {
  /** Those of a table at one moment of its log. */
  readonly logged: readonly string[];
  /** Those that it has now. */
  readonly now: readonly string[];
  /** Those that the table had when capture looked last. Undefined: capture does not know this table yet. */
  readonly known: readonly string[] | undefined;
}

/**
 * Whether a column that the mapping names is in the table under another name, or gone, and the mapping does not say so: its values would
 * then be recorded as if no rule held for them. A column keeps its place when it is renamed, and a new one comes last. So a column that
 * stands behind a name that nobody knew is a new one, also where it has a known name again. Not seen: a column is dropped and another
 * takes its name, both between two looks.
 */
export function isLost(column: string, former: FormerColumns, lists: ColumnLists): boolean {
  const today = nameToday(former, column);
  if (former.dropped.has(today)) return false;
  const logged = namesToday(lists.logged, former);
  const known = lists.known && namesToday(lists.known, former);
  if (known?.includes(today) ? retainedOf(logged, known).includes(today) : logged.includes(today)) return false;
  // The log may be older than the column: then the table has got columns since, and no other name.
  const isOlder = isBeginning(logged, namesToday(lists.now, former)) && lists.now.includes(today);
  return !(isOlder && (known === undefined || !known.includes(today) || isBeginning(logged, known)));
}

/** The columns by their names of today, without those that were dropped. */
function namesToday(columns: readonly string[], former: FormerColumns): string[] {
  return columns.map((column) => nameToday(former, column)).filter((column) => !former.dropped.has(column));
}

/**
 * Those of the known columns that the table still has. Where another name stands behind and a known one is missing, columns may have
 * changed their names: then only those are certain that have the same before them.
 */
function retainedOf(logged: readonly string[], known: readonly string[]): readonly string[] {
  const retained = inOrder(logged, known);
  if (retained.length === logged.length || retained.length === known.length) return retained;
  const end = logged.findIndex((column, index) => known[index] !== column);
  return logged.slice(0, end);
}

/** The longest beginning that has known columns alone, in their order. */
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
