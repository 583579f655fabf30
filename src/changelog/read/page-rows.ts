import type { Dictionary } from '../names/dictionary.ts';
import type { EntryRow } from './store.ts';

/** The result of one statement that reads a page. */
export type PageRead =
  | { readonly kind: 'page'; readonly total: number; readonly entries: EntryRow[] }
  /** The statement's snapshot has names that the dictionary lacks. */
  | { readonly kind: 'outdated names' }
  /** One statement cannot answer, or should not: the plan is large, or an entry has much text. */
  | { readonly kind: 'several statements' };

const outdatedNames: PageRead = { kind: 'outdated names' };
export const severalStatements: PageRead = { kind: 'several statements' };

/** Maximum bytes of an entry's text. Annals reads a page with a longer entry in several statements. */
const maxTextBytes = 256 * 1024;
const fits = `octet_length(paths) + coalesce(octet_length(related), 0) <= ${maxTextBytes}`;

/** Stands between the parts of the page's text. JSON texts cannot contain it. An id or a name may. */
const separator = '\u001e';
const inSql = "E'\\x1e'";
const partsOfEntry = 8;

/**
 * The columns of the one row that a database function of pages is made to: the driver takes much longer to read a row for each
 * entry than Annals takes to split a text. A text that may be null is empty if it is, and begins with "=" if it may be empty too.
 */
export const pageColumns = `min(total) as total, bool_and(current) as current, count(kind) as count,
  string_agg(concat_ws(${inSql}, at, kind, actor, entity_id, coalesce('=' || name, ''), coalesce('=' || schema_version, ''),
    case when ${fits} then coalesce(related, '') else '' end, case when ${fits} then paths else '' end), ${inSql})
    filter (where kind is not null) as entries`;

/** The row of a page. */
export interface PageRow {
  /** Null where the statement gave up. */
  total: number | null;
  /** Whether the snapshot has no names that the dictionary lacks. */
  current: boolean;
  /** The number of entries. */
  count: number;
  /** The parts of all entries. Null if there are none. */
  entries: string | null;
}

/** Converts the row to a page: names replace the numbers of kinds and actors. */
export function pageOf([row]: readonly PageRow[], dictionary: Dictionary): PageRead {
  if (row === undefined) throw new Error('a page came without its total');
  if (!row.current) return outdatedNames;
  if (row.total === null) return severalStatements;
  const parts = row.entries?.split(separator) ?? [];
  // An id or a name has a separator.
  if (parts.length !== row.count * partsOfEntry) return severalStatements;
  const entries: EntryRow[] = [];
  for (let place = 0; place < parts.length; place += partsOfEntry) {
    const entry = entryOf(parts, place, dictionary);
    if (entry === undefined) return outdatedNames;
    if (entry.paths === '') return severalStatements;
    entries.push(entry);
  }
  return { kind: 'page', total: row.total, entries };
}

/** The entry whose parts begin at a place; undefined if the dictionary lacks its names. */
function entryOf(parts: readonly string[], place: number, dictionary: Dictionary): EntryRow | undefined {
  const part = (number: number) => parts[place + number] ?? '';
  const kind = dictionary.kindOf.get(Number(part(1)));
  const actor = dictionary.actorOf.get(Number(part(2)));
  if (kind === undefined || actor === undefined) return undefined;
  return {
    at: Number(part(0)),
    type: kind.type,
    entity: kind.entity,
    entityId: part(3),
    name: textOrNull(part(4)),
    schemaVersion: textOrNull(part(5)),
    actor: actor.name,
    related: part(6) === '' ? null : part(6),
    paths: part(7),
  };
}

function textOrNull(part: string): string | null {
  return part === '' ? null : part.slice(1);
}
