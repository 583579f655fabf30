import type { Dictionary } from './dictionary.ts';
import type { EntryRow, PageOfEntries } from './store.ts';

/** A page; undefined where its snapshot knows names that the dictionary lacks, 'long' where it has very long entries. */
export type PageRead = PageOfEntries | 'long' | undefined;

/** Bytes of an entry's text; a page that has longer ones is read in another way. */
const longestEntry = 256 * 1024;
const fits = `octet_length(paths) + coalesce(octet_length(related), 0) <= ${longestEntry}`;
export const entryNumbers = `at, sequence, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion",
  case when ${fits} then related end as related, case when ${fits} then paths end as paths`;
export const pageColumns = `total, current, ${entryNumbers}`;

/** An entry with the numbers of its kind and its actor; null where there is a total without an entry. */
export type EntryNumbers = { actor: number; kind: number | null; paths: string | null } & Omit<
  EntryRow,
  'type' | 'entity' | 'actor' | 'paths'
>;

export type PageRow = { total: number; current: boolean } & EntryNumbers;

export function pageOf(rows: readonly PageRow[], dictionary: Dictionary): PageRead {
  const [head] = rows;
  if (head === undefined) throw new Error('a page came without its total');
  return head.current ? namedPage(head.total, rows, dictionary) : undefined;
}

export function namedPage(total: number, rows: readonly EntryNumbers[], dictionary: Dictionary): PageRead {
  const entries: EntryRow[] = [];
  for (const { at, sequence, kind, actor, entityId, name, schemaVersion, related, paths } of rows) {
    if (kind === null) continue;
    const kindNames = dictionary.kindOf.get(kind);
    const actorName = dictionary.actorOf.get(actor)?.name;
    if (kindNames === undefined || actorName === undefined) return undefined;
    if (paths === null) return 'long';
    const { type, entity } = kindNames;
    entries.push({ at, sequence, type, entity, entityId, name, schemaVersion, actor: actorName, related, paths });
  }
  return { total, entries };
}
