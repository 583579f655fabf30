import type { Dictionary } from '../names/dictionary.ts';
import type { EntryRow, Place } from './store.ts';

/**
 * What was read of a page: its entries, or where they stand. Undefined where its snapshot knows names that the dictionary
 * lacks, 'long' where it has very long entries.
 */
export type PageRead<Item = EntryRow> = { total: number; entries: Item[] } | 'long' | undefined;

/** What is wanted of the entries of a page. */
export interface Shape<Row, Item> {
  /** What a statement that reads it is called, so that it is prepared for itself. */
  readonly name: string;
  readonly columns: string;
  read(total: number, rows: readonly Row[], dictionary: Dictionary): PageRead<Item>;
}

/** The first row of a page has its total, and nothing else where there are no entries. */
export type Head = { total: number; current: boolean };

export function pageOf<Row, Item>(
  rows: readonly (Row & Head)[],
  dictionary: Dictionary,
  shape: Shape<Row, Item>,
): PageRead<Item> {
  const [head] = rows;
  if (head === undefined) throw new Error('a page came without its total');
  return head.current ? shape.read(head.total, rows, dictionary) : undefined;
}

/** Bytes of an entry's text; a page that has longer ones is read in another way. */
const longestEntry = 256 * 1024;
const fits = `octet_length(paths) + coalesce(octet_length(related), 0) <= ${longestEntry}`;

/** An entry with the numbers of its kind and its actor; null where there is a total without an entry. */
export type EntryNumbers = { actor: number; kind: number | null; paths: string | null } & Omit<
  EntryRow,
  'type' | 'entity' | 'actor' | 'paths'
>;

export const entriesOfPage: Shape<EntryNumbers, EntryRow> = {
  name: 'page',
  columns: `at, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion",
            case when ${fits} then related end as related, case when ${fits} then paths end as paths`,
  read(total, rows, dictionary) {
    const entries: EntryRow[] = [];
    for (const { at, kind, actor, entityId, name, schemaVersion, related, paths } of rows) {
      if (kind === null) continue;
      const kindNames = dictionary.kindOf.get(kind);
      const actorName = dictionary.actorOf.get(actor)?.name;
      if (kindNames === undefined || actorName === undefined) return undefined;
      if (paths === null) return 'long';
      const { type, entity } = kindNames;
      entries.push({ at, type, entity, entityId, name, schemaVersion, actor: actorName, related, paths });
    }
    return { total, entries };
  },
};

export const placesOfPage: Shape<Place | { at: null; sequence: null }, Place> = {
  name: 'places',
  columns: 'at, sequence',
  read: (total, rows) => ({
    total,
    entries: rows.flatMap(({ at, sequence }) => (at === null ? [] : [{ at, sequence }])),
  }),
};
