import { type FormerColumns, nameToday } from '../../recording/mapping/former-columns.ts';

/** Names of columns, in the order of the table, without those that PostgreSQL computes. */
export interface ColumnLists {
  /** Those of a table at one moment of its log. */
  readonly found: readonly string[];
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
  const found = namesToday(lists.found, former);
  const known = lists.known && namesToday(lists.known, former);
  if (known?.includes(today) ? keptOf(found, known).includes(today) : found.includes(today)) return false;
  // The log may be older than the column: then the table has got columns since, and no other name.
  const isOlder = isBeginning(found, namesToday(lists.now, former)) && lists.now.includes(today);
  return !(isOlder && (known === undefined || !known.includes(today) || isBeginning(found, known)));
}

/** The columns by their names of today, without those that were dropped. */
function namesToday(columns: readonly string[], former: FormerColumns): string[] {
  return columns.map((column) => nameToday(former, column)).filter((column) => !former.dropped.has(column));
}

/**
 * Those of the known columns that the table still has. Where another name stands behind and a known one is missing, columns may have
 * changed their names: then only those are certain that have the same before them.
 */
function keptOf(found: readonly string[], known: readonly string[]): readonly string[] {
  const kept = inOrder(found, known);
  if (kept.length === found.length || kept.length === known.length) return kept;
  const end = found.findIndex((column, place) => known[place] !== column);
  return found.slice(0, end);
}

/** The longest beginning that has known columns alone, in their order. */
function inOrder(found: readonly string[], known: readonly string[]): readonly string[] {
  let place = -1;
  const end = found.findIndex((column) => {
    const next = known.indexOf(column);
    const isNew = next <= place;
    place = next;
    return isNew;
  });
  return end === -1 ? found : found.slice(0, end);
}

function isBeginning(columns: readonly string[], all: readonly string[]): boolean {
  return columns.every((column, place) => all[place] === column);
}
