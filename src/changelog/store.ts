import { CompiledQuery } from 'kysely';
import type { DatabaseTransaction } from '../db/database.ts';
import type { Statements } from '../db/statements.ts';
import type { Dictionary, FoldedCount, NamesRead } from './dictionary.ts';
import type { Interval, Selection } from './plan.ts';

/** An entry as the database has it; `related` and `paths` are JSON texts. */
export interface EntryRow {
  at: number;
  type: string;
  entity: string;
  entityId: string;
  name: string | null;
  schemaVersion: string | null;
  actor: string;
  related: string | null;
  paths: string;
}

/** Where an entry stands in time; of one millisecond the later sequence was recorded later. */
export interface Place {
  at: number;
  sequence: number;
}

export interface PageOfEntries {
  total: number;
  entries: EntryRow[];
}

const entryColumns = `e.at, k.type, k.entity, e.entity_id as "entityId", e.name, e.schema_version as "schemaVersion",
  a.name as actor, e.related, e.paths`;
const withNames = `join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  join change_actor a on a.tenant = e.tenant and a.actor = e.actor`;

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
/** How many counts to remember, and of selections that are told in how many characters: 2 MB of them at most. */
const mostCounts = 200;
const longestSelection = 10_000;

/**
 * A page and its exact total, from one statement and so from one snapshot; undefined where that snapshot knows names
 * that the dictionary lacks.
 */
export async function readTalliedPage(
  statements: Statements,
  tenant: string,
  page: TalliedPage,
): Promise<PageOfEntries | undefined> {
  const [interval, ...furtherIntervals] = page.intervals;
  const [selection, ...furtherSelections] = interval?.selections ?? [];
  if (selection !== undefined && interval?.before === null && page.skip <= nearTheNewest) {
    if (furtherIntervals.length === 0 && furtherSelections.length === 0) {
      const near = await readNear(statements, tenant, { ...page, since: interval.since, selection });
      if (near === undefined || near.entries.length >= Math.min(page.size, near.total - page.skip)) return near;
    }
  }
  const { rows } = await statements.query<PageRow>({
    name: 'tallied page',
    text: `select ${pageColumns} from change_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text::xid8, $11)`,
    values: [tenant, page.now, ...intervalColumns(page.intervals), page.skip, page.size, ...knownNames(page)],
  });
  return pageOf(rows, page.dictionary);
}

/** A page of one selection from a time on; it may lack entries where they are spread unevenly. */
async function readNear(
  statements: Statements,
  tenant: string,
  page: TalliedPage & { since: number; selection: Selection },
): Promise<PageOfEntries | undefined> {
  const { dictionary, now, since, skip, size } = page;
  const { actors, kinds } = setsOf(page.selection);
  const sets = [`{${actors.join(',')}}`, `{${kinds.join(',')}}`];
  const selection = sets.join(' ');
  const known = dictionary.counts.get(selection);
  if (known !== undefined) {
    const { rows } = await statements.query<EntryNumbers & { total: number | null }>({
      name: 'near page again',
      text: `select total, ${entryNumbers}
               from change_read_again($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::xid8, $12)`,
      values: [tenant, now, since, ...sets, known.folded, known.minute, known.folds, skip, size, ...knownNames(page)],
    });
    const total = rows[0]?.total ?? null;
    if (total !== null) return namedPage(total, rows, dictionary);
  }
  const { rows } = await statements.query<PageRow & { [Name in keyof FoldedCount]: number | null }>({
    name: 'near page',
    text: `select folded, minute, folds, ${pageColumns}
             from change_read_near($1, $2, $3, $4, $5, $6, $7, $8, $9::text::xid8, $10)`,
    values: [
      tenant,
      now,
      since,
      ...sets,
      page.selection.actors === null ? sets[1] : [0, ...kinds],
      skip,
      size,
      ...knownNames(page),
    ],
  });
  const { folded = null, minute = null, folds = null } = rows[0] ?? {};
  const remembered = selection.length <= longestSelection;
  if (remembered && folded !== null && minute !== null && folds !== null) {
    if (dictionary.counts.size >= mostCounts) dictionary.counts.clear();
    dictionary.counts.set(selection, { folded, minute, folds });
  }
  return pageOf(rows, dictionary);
}

const entryNumbers = `at, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion", related, paths`;
const pageColumns = `total, current, ${entryNumbers}`;

/** What asks whether the snapshot knows no further names; nulls where that does not matter. */
function knownNames({ dictionary, plannedByNames }: TalliedPage): unknown[] {
  return plannedByNames ? [dictionary.since, dictionary.recent] : [null, null];
}

function currentNames(tenant: string, since: string, recent: string): string {
  return `(${since}::text is null or ${recent}::bigint =
    (select count(*) from change_kind n where n.tenant = ${tenant} and n.registered >= ${since}::text::xid8)
    + (select count(*) from change_actor n where n.tenant = ${tenant} and n.registered >= ${since}::text::xid8))`;
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
): Promise<PageOfEntries | undefined> {
  const { rows } = await statements.query<PageRow>({
    name: 'documents page',
    text: `select ${pageColumns}
             from change_read_documents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::xid8, $13)`,
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
    ],
  });
  return pageOf(rows, page.dictionary);
}

/** An entry with the numbers of its kind and its actor; null where there is a total without an entry. */
type EntryNumbers = { actor: number; kind: number | null } & Omit<EntryRow, 'type' | 'entity' | 'actor'>;

type PageRow = { total: number; current: boolean } & EntryNumbers;

function pageOf(rows: readonly PageRow[], dictionary: Dictionary): PageOfEntries | undefined {
  const [head] = rows;
  if (head === undefined) throw new Error('a page came without its total');
  return head.current ? namedPage(head.total, rows, dictionary) : undefined;
}

function namedPage(total: number, rows: readonly EntryNumbers[], dictionary: Dictionary): PageOfEntries | undefined {
  const entries: EntryRow[] = [];
  for (const { at, kind, actor, entityId, name, schemaVersion, related, paths } of rows) {
    if (kind === null) continue;
    const kindNames = dictionary.kindOf.get(kind);
    const actorName = dictionary.actorOf.get(actor)?.name;
    if (kindNames === undefined || actorName === undefined) return undefined;
    const { type, entity } = kindNames;
    entries.push({ at, type, entity, entityId, name, schemaVersion, actor: actorName, related, paths });
  }
  return { total, entries };
}

/** A selection as the functions of the database want it. */
function setsOf({ actors, kinds }: Selection): { actors: readonly number[]; kinds: readonly number[] } {
  return { actors: actors ?? [0], kinds: kinds ?? (actors === null ? [0] : []) };
}

/** The arrays that change_page wants: the selections of all intervals in one list. */
function intervalColumns(intervals: readonly Interval[]): unknown[] {
  const sets = intervals.flatMap((interval) => interval.selections.map(setsOf));
  let ended = 0;
  return [
    intervals.map((interval) => interval.since),
    intervals.map((interval) => interval.before),
    intervals.map((interval) => (ended += interval.selections.length)),
    sets.map(({ actors }) => `{${actors.join(',')}}`),
    sets.map(({ kinds }) => `{${kinds.join(',')}}`),
  ];
}

/** The names registered since a dictionary was read, and some that it may have; all of them from `since` '0'. */
export async function readNames(statements: Statements, tenant: string, since: string): Promise<NamesRead> {
  const { rows } = await statements.query<{
    since: string;
    kind: number | null;
    entity: string;
    type: string;
    related_entities: string[];
    actor: number | null;
    name: string;
    recent: boolean;
  }>({
    text: `with snapshot as (select pg_snapshot_xmin(pg_current_snapshot()) as since)
     select s.since, n.kind, n.entity, n.type, n.related_entities, n.actor, n.name, n.registered >= s.since as recent
       from snapshot s
       left join (
         select kind, entity, type, related_entities, null::bigint as actor, null as name, registered
           from change_kind where tenant = $1 and registered >= $2::text::xid8
         union all
         select null, null, null, null, actor, name, registered
           from change_actor where tenant = $1 and registered >= $2::text::xid8
       ) as n on true
       order by n.kind, n.actor`,
    values: [tenant, since],
  });
  return {
    since: rows[0]?.since ?? '0',
    recent: rows.filter((row) => row.recent).length,
    kinds: rows.flatMap((row) =>
      row.kind === null
        ? []
        : [{ id: row.kind, entity: row.entity, type: row.type, relatedEntities: row.related_entities }],
    ),
    actors: rows.flatMap((row) => (row.actor === null ? [] : [{ id: row.actor, name: row.name }])),
  };
}

/** What the transaction's snapshot says of the tenant: its horizon, and whether it knows no newer names. */
export async function readSnapshot(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  dictionary: Dictionary,
): Promise<{ horizon: number; current: boolean }> {
  const { rows } = await transaction.executeQuery<{ horizon: number; current: boolean }>(
    CompiledQuery.raw(`select change_horizon($1, $2) as horizon, ${currentNames('$1', '$3', '$4')} as current`, [
      tenant,
      now,
      dictionary.since,
      dictionary.recent,
    ]),
  );
  return rows[0] ?? { horizon: 0, current: false };
}

/** How many entries a tenant has at or after a moment, and how many of all times are not in the tallies yet. */
export async function readExtent(
  transaction: DatabaseTransaction,
  tenant: string,
  since: number,
): Promise<{ entries: number; pending: number }> {
  const { rows } = await transaction.executeQuery<{ entries: number; pending: number }>(
    CompiledQuery.raw(
      `select change_rank($1, '{"{0}"}', '{"{0}"}', $2) as entries,
              (select coalesce(sum(cardinality(d.ats)), 0) from change_delta d where d.tenant = $1)::bigint as pending`,
      [tenant, since],
    ),
  );
  return rows[0] ?? { entries: 0, pending: 0 };
}

/** The total of the intervals, and the places of some of their entries, newest first. */
export async function readTalliedPlaces(
  transaction: DatabaseTransaction,
  tenant: string,
  page: { now: number; horizon: number; intervals: readonly Interval[]; skip: number; size: number },
): Promise<{ total: number; places: Place[] }> {
  const { rows } = await transaction.executeQuery<{ total: number } & Place>(
    CompiledQuery.raw('select total, at, sequence from change_page($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
      tenant,
      page.now,
      page.horizon,
      ...intervalColumns(page.intervals),
      page.skip,
      page.size,
    ]),
  );
  return { total: rows[0]?.total ?? 0, places: rows.slice(1) };
}

/** The entries at these places, in the same order. */
export async function readEntries(
  transaction: DatabaseTransaction,
  tenant: string,
  places: readonly Place[],
): Promise<EntryRow[]> {
  const { rows } = await transaction.executeQuery<EntryRow>(
    CompiledQuery.raw(
      `select ${entryColumns}
         from unnest($2::bigint[], $3::bigint[]) with ordinality as place (at, sequence, ordinal)
         join change_entry e on e.tenant = $1 and e.at = place.at and e.sequence = place.sequence ${withNames}
         order by place.ordinal`,
      [tenant, places.map((place) => place.at), places.map((place) => place.sequence)],
    ),
  );
  return rows;
}
