import type pg from 'pg';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Statements, statementsOf } from '../../postgres/statements.ts';
import type { EntryRow, Place, PlanName } from '../entries/entry-store.ts';
import type { Dictionary } from './names/dictionary.ts';
import type { Interval } from './plan/tally-plan.ts';
import type { IdRange } from './predicate.ts';

/** A page that tallies can count. */
export interface TalliedPage {
  /** Milliseconds since 1970. */
  now: number;
  /** Newest first. */
  intervals: readonly Interval[];
  skip: number;
  size: number;
}

const parameters = '$1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::xid8, $11, $12';
/** Made once: the driver compares it each time with the text that the server has prepared. */
const talliedPage = `select page from change_page(${parameters})`;

/**
 * Reads a page and its exact total in one statement, and so from one snapshot. `byNames`: whether names decided the
 * intervals. Then a name that the dictionary lacks might belong to them.
 */
export async function readTalliedPage(
  statements: Statements,
  tenant: string,
  page: TalliedPage,
  { dictionary, byNames }: { dictionary: Dictionary; byNames: boolean },
): Promise<PageRead> {
  const { since, recent, lineage } = dictionary;
  const names = byNames ? [since, recent, lineage] : [null, null, lineage];
  const { rows } = await statements.query<PageRow>(talliedPageStatement(tenant, page, names));
  return pageOf(rows, dictionary, 'tallies');
}

/** The statement of a page. `names`: what change_snapshot takes of them. */
export function talliedPageStatement(tenant: string, page: TalliedPage, names: readonly unknown[]): pg.QueryConfig {
  return {
    name: 'tallied page',
    text: talliedPage,
    values: [...columnsOf(tenant, page), ...names],
  };
}

/** Reads the total and the places of a page in a transaction. The plan has all names of the transaction's snapshot. */
export async function readTalliedPlaces(
  transaction: DatabaseTransaction,
  tenant: string,
  page: TalliedPage,
): Promise<{ total: number; places: Place[] }> {
  const { rows } = await statementsOf(transaction).query<{ total: number } & Place>({
    text: `select total, at, sequence from change_read(${parameters})`,
    values: [...columnsOf(tenant, page), null, null, null],
  });
  return { total: rows[0]?.total ?? 0, places: rows.slice(1).map(({ at, sequence }) => ({ at, sequence })) };
}

/**
 * The arrays that change_read takes, as texts: the selections of all intervals in one list, their numbers as texts of arrays. The
 * driver would take longer to make the texts, because it does not know that all of this is numbers.
 */
function columnsOf(tenant: string, { now, intervals, skip, size }: TalliedPage): unknown[] {
  let [sinces, befores, ends, actorSets, kindSets] = ['', '', '', '', ''];
  let ended = 0;
  for (const { since, before, selections } of intervals) {
    sinces += `,${since}`;
    befores += `,${before ?? 'null'}`;
    for (const { actors, kinds } of selections) {
      actorSets += `,"{${actors?.join(',') ?? '0'}}"`;
      kindSets += `,"{${kinds?.join(',') ?? (actors === null ? '0' : '')}}"`;
    }
    ended += selections.length;
    ends += `,${ended}`;
  }
  const arrays = [sinces, befores, ends, actorSets, kindSets].map((elements) => `{${elements.slice(1)}}`);
  return [tenant, now, ...arrays, skip, size];
}

/** The result of one statement that reads a page. */
export type PageRead =
  | { readonly kind: 'page'; readonly plan: PlanName; readonly total: number; readonly entries: EntryRow[] }
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
export function pageOf([row]: readonly PageRow[], dictionary: Dictionary, plan: PlanName): PageRead {
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
  return { kind: 'page', plan, total: Number(total), entries };
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

/** The conditions on documents that the query names one by one; null means any. */
interface DocumentsPage {
  now: number;
  since: number;
  before: number | null;
  kinds: readonly number[] | null;
  actors: readonly number[] | null;
  /** Hashes of ids: those of the documents, or those of their related documents. */
  documents: readonly string[] | null;
  relatedDocuments: readonly string[] | null;
  relatedEntities: readonly string[] | null;
  /** The ids of documents instead of the hashes. */
  ids: IdRange | null;
  skip: number;
  size: number;
  dictionary: Dictionary;
}

/** Reads a page and its total in one statement. The query names its documents, or their related documents, one by one. */
export async function readDocumentsPage(
  statements: Statements,
  tenant: string,
  page: DocumentsPage,
): Promise<PageRead> {
  const { rows } = await statements.query<PageRow>({
    name: 'documents page',
    text: `select page from change_page_documents(
             $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15::text::xid8, $16, $17)`,
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
      page.ids?.from,
      page.ids?.before,
      page.ids?.like,
      page.skip,
      page.size,
      page.dictionary.since,
      page.dictionary.recent,
      page.dictionary.lineage,
    ],
  });
  return pageOf(rows, page.dictionary, 'documents');
}

/** The conditions of a query for paths; null means any. */
interface PathsPage {
  now: number;
  since: number;
  before: number | null;
  kinds: readonly number[] | null;
  actors: readonly number[] | null;
  /** The entity types of the kinds. */
  entities: readonly string[] | null;
  /** Patterns of LIKE for the names of the paths. */
  patterns: readonly string[];
  skip: number;
  size: number;
  /** With more entries the query is for several statements; null: with any number it is for one. */
  maxTotal: number | null;
  dictionary: Dictionary;
}

/** Reads a page and its total in one statement, if numbers tell which entries have the paths. */
export async function readPathsPage(statements: Statements, tenant: string, page: PathsPage): Promise<PageRead> {
  const { now, since, before, kinds, actors, entities, patterns, skip, size, maxTotal, dictionary } = page;
  const { since: namesSince, recent, lineage } = dictionary;
  const { rows } = await statements.query<PageRow>({
    name: 'paths page',
    text: 'select page from change_page_paths($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::xid8, $13, $14)',
    values: [
      ...[tenant, now, since, before, kinds, actors, entities, patterns],
      ...[skip, size, maxTotal, namesSince, recent, lineage],
    ],
  });
  return pageOf(rows, dictionary, 'search');
}
