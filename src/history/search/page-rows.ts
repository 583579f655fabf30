import type { EntryRow, Way } from '../entries/entry-store-new.ts';
import type { Dictionary } from './names/dictionary.ts';

/** The result of one statement that reads a page. */
export type PageRead =
  | { readonly kind: 'page'; readonly way: Way; readonly total: number; readonly entries: EntryRow[] }
  /** The statement's snapshot has names that the dictionary lacks. */
  | { readonly kind: 'outdated names' }
  /** One statement cannot answer, or should not: the plan is large, or an entry has much text. */
  | { readonly kind: 'several statements' };

const outdatedNames: PageRead = { kind: 'outdated names' };
export const severalStatements: PageRead = { kind: 'several statements' };

/**
 * Stands between the parts of the page's text. JSON texts cannot contain it. An id, a name or a schema version may. First come the
 * total, empty where the statement gave up, whether the snapshot has no names that the dictionary lacks, and the number of entries.
 * Then come the parts of each entry; `sql/history/change_page_entry.sql` makes them.
 */
const separator = '\u001e';
const partsOfHead = 3;
const partsOfEntry = 9;

/** The row of a page: the driver takes much longer to read rows and columns than Annals takes to split a text. */
export interface PageRow {
  page: string;
}

/** Converts the row to a page: names replace the numbers of kinds and actors. */
export function pageOf([row]: readonly PageRow[], dictionary: Dictionary, way: Way): PageRead {
  if (row === undefined) throw new Error('a page came without its total');
  const parts = row.page.split(separator);
  const [total = '', current, count] = parts;
  if (current !== 'true') return outdatedNames;
  if (total === '') return severalStatements;
  // An id, a name or a schema version contains the separator.
  if (parts.length !== partsOfHead + Number(count) * partsOfEntry) return severalStatements;
  const entries: EntryRow[] = [];
  for (let place = partsOfHead; place < parts.length; place += partsOfEntry) {
    const entry = entryOf(parts, place, dictionary);
    if (entry === undefined) return outdatedNames;
    if (entry.paths === '') return severalStatements;
    entries.push(entry);
  }
  return { kind: 'page', way, total: Number(total), entries };
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
    ...(part(8) !== '' && { erased: part(8) }),
  };
}

function textOrNull(part: string): string | null {
  return part === '' ? null : part.slice(1);
}
