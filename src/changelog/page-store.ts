import type { Statements } from '../db/statements.ts';
import type { Dictionary, FoldedCount } from './dictionary.ts';
import type { Interval } from './plan.ts';
import { intervalColumns, type SelectionTexts, selectionTexts } from './selection-columns.ts';
import type { EntryRow, PageOfEntries } from './store.ts';

interface TalliedPage {
  now: number;
  /** Newest first. */
  intervals: readonly Interval[];
  skip: number;
  size: number;
  dictionary: Dictionary;
  /** Whether the intervals were planned by names: then one that the dictionary lacks might belong to them. */
  plannedByNames: boolean;
}

// Pages with no more entries before them are read from the newest on; deeper ones are walked to.
const nearTheNewest = 200;
/** How many counts to remember of a tenant, and of selections that are told in how many characters: 2 MB at most. */
const mostCounts = 100;
const longestSelection = 20_000;

/** A page; undefined where its snapshot knows names that the dictionary lacks, 'long' where it has very long entries. */
export type PageRead = PageOfEntries | 'long' | undefined;

/** A page and its exact total, from one statement and so from one snapshot. */
export async function readTalliedPage(statements: Statements, tenant: string, page: TalliedPage): Promise<PageRead> {
  const usual = usualOf(page.intervals);
  if (usual !== undefined && page.skip <= nearTheNewest) {
    const near = await readNear(statements, tenant, { ...page, ...usual });
    if (near === undefined || near === 'long' || near.entries.length >= Math.min(page.size, near.total - page.skip))
      return near;
  }
  // Who asks for a deep page asks for others too: what they have in common is counted once.
  const name = usual === undefined ? undefined : nameOf(usual.selection);
  if (usual !== undefined && name !== undefined && isRemembered(name) && !page.dictionary.counts.has(name)) {
    if ((await readNear(statements, tenant, { ...page, ...usual, skip: 0, size: 0 })) === undefined) return undefined;
  }
  const known = name === undefined ? undefined : page.dictionary.counts.get(name);
  const { rows } = await statements.query<PageRow>({
    name: 'tallied page',
    text: `select ${pageColumns}
             from change_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::xid8, $11, $12, $13, $14, $15)`,
    values: [
      tenant,
      page.now,
      ...intervalColumns(page.intervals),
      page.skip,
      page.size,
      ...knownNames(page),
      known?.folded,
      known?.minute,
      known?.folds,
    ],
  });
  return pageOf(rows, page.dictionary);
}

/** What most queries ask for: one selection from a time on. */
interface Usual {
  since: number;
  selection: SelectionTexts;
}

function usualOf([interval, ...furtherIntervals]: readonly Interval[]): Usual | undefined {
  if (interval === undefined || interval.before !== null || furtherIntervals.length > 0) return undefined;
  const [selection, ...furtherSelections] = interval.selections;
  if (selection === undefined || furtherSelections.length > 0) return undefined;
  return { since: interval.since, selection: selectionTexts(selection) };
}

function nameOf({ actors, kinds }: SelectionTexts): string {
  return `${actors} ${kinds}`;
}

function isRemembered(name: string): boolean {
  return name.length <= longestSelection;
}

/** A page of one selection from a time on; it may lack entries where they are spread unevenly. */
async function readNear(statements: Statements, tenant: string, page: TalliedPage & Usual): Promise<PageRead> {
  const { dictionary, now, since, selection, skip, size } = page;
  const { actors, kinds, tallied } = selection;
  const name = nameOf(selection);
  const known = dictionary.counts.get(name);
  if (known !== undefined) {
    const { folded, minute, folds } = known;
    const { rows } = await statements.query<EntryNumbers & { total: number | null }>({
      name: 'near page again',
      text: `select total, ${entryNumbers}
               from change_read_again($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::xid8, $12, $13)`,
      values: [tenant, now, since, actors, kinds, folded, minute, folds, skip, size, ...knownNames(page)],
    });
    const total = rows[0]?.total ?? null;
    if (total !== null) return namedPage(total, rows, dictionary);
  }
  const { rows } = await statements.query<PageRow & { [Name in keyof FoldedCount]: number | null }>({
    name: 'near page',
    text: `select folded, minute, folds, ${pageColumns}
             from change_read_near($1, $2, $3, $4, $5, $6, $7, $8, $9::text::xid8, $10, $11)`,
    values: [tenant, now, since, actors, kinds, tallied, skip, size, ...knownNames(page)],
  });
  const { folded = null, minute = null, folds = null } = rows[0] ?? {};
  if (isRemembered(name) && folded !== null && minute !== null && folds !== null) {
    if (dictionary.counts.size >= mostCounts) dictionary.counts.clear();
    dictionary.counts.set(name, { folded, minute, folds });
  }
  return pageOf(rows, dictionary);
}

/** Bytes of an entry's text; a page that has longer ones is read in another way. */
const longestEntry = 256 * 1024;
const fits = `octet_length(paths) + coalesce(octet_length(related), 0) <= ${longestEntry}`;
const entryNumbers = `at, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion",
  case when ${fits} then related end as related, case when ${fits} then paths end as paths`;
const pageColumns = `total, current, ${entryNumbers}`;

/** What asks whether the snapshot knows no further names; nulls where that does not matter. */
function knownNames({ dictionary, plannedByNames }: TalliedPage): unknown[] {
  const { since, recent, lineage } = dictionary;
  return plannedByNames ? [since, recent, lineage] : [null, null, lineage];
}

/** What is asked of documents that are named one by one; null stands for any. */
export interface DocumentsPage {
  now: number;
  since: number;
  before: number | null;
  kinds: readonly number[] | null;
  actors: readonly number[] | null;
  /** Hashes of ids; either the documents' own or those of what they are related to. */
  documents: readonly string[] | null;
  relatedDocuments: readonly string[] | null;
  relatedEntities: readonly string[] | null;
  skip: number;
  size: number;
  dictionary: Dictionary;
}

/** The same for documents that are named one by one. */
export async function readDocumentsPage(
  statements: Statements,
  tenant: string,
  page: DocumentsPage,
): Promise<PageRead> {
  const { rows } = await statements.query<PageRow>({
    name: 'documents page',
    text: `select ${pageColumns}
             from change_read_documents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::xid8, $13, $14)`,
    values: [
      tenant,
      page.now,
      page.since,
      page.before,
      page.kinds,
      page.actors,
      page.documents,
      page.relatedDocuments,
      page.relatedEntities,
      page.skip,
      page.size,
      page.dictionary.since,
      page.dictionary.recent,
      page.dictionary.lineage,
    ],
  });
  return pageOf(rows, page.dictionary);
}

/** An entry with the numbers of its kind and its actor; null where there is a total without an entry. */
type EntryNumbers = { actor: number; kind: number | null; paths: string | null } & Omit<
  EntryRow,
  'type' | 'entity' | 'actor' | 'paths'
>;

type PageRow = { total: number; current: boolean } & EntryNumbers;

function pageOf(rows: readonly PageRow[], dictionary: Dictionary): PageRead {
  const [head] = rows;
  if (head === undefined) throw new Error('a page came without its total');
  return head.current ? namedPage(head.total, rows, dictionary) : undefined;
}

function namedPage(total: number, rows: readonly EntryNumbers[], dictionary: Dictionary): PageRead {
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
}
