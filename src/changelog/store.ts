import { CompiledQuery } from 'kysely';
import type pg from 'pg';
import type { DatabaseTransaction } from '../db/database.ts';
import type { Dictionary, NamesRead } from './dictionary.ts';
import type { Interval } from './plan.ts';

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

export interface TalliedPage {
  total: number;
  /** Whether the snapshot knows no names besides those of the dictionary that was asked with. */
  current: boolean;
  entries: EntryRow[];
}

const entryColumns = `e.at, k.type, k.entity, e.entity_id as "entityId", e.name, e.schema_version as "schemaVersion",
  a.name as actor, e.related, e.paths`;
const withNames = `join change_kind k on k.tenant = e.tenant and k.kind = e.kind
  join change_actor a on a.tenant = e.tenant and a.actor = e.actor`;

/**
 * A page and its exact total, from one statement and so from one snapshot. Intervals newest first; without a
 * dictionary no name was looked up, and the page is always current.
 */
export async function readTalliedPage(
  pool: pg.Pool,
  tenant: string,
  page: {
    now: number;
    intervals: readonly Interval[];
    skip: number;
    size: number;
    dictionary?: Dictionary | undefined;
  },
): Promise<TalliedPage> {
  return pageOf(
    await pool.query<PageRow>({
      name: 'tallied page',
      text: talliedPage,
      values: [
        tenant,
        page.now,
        ...intervalColumns(page.intervals),
        page.skip,
        page.size,
        page.dictionary?.since ?? null,
        page.dictionary?.recent ?? null,
      ],
    }),
  );
}

const talliedPage = `
select total, current, at, type, entity, entity_id as "entityId", name, schema_version as "schemaVersion", actor,
       related, paths
  from change_read($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::xid8, $12)`;

function currentNames(tenant: string, since: string, recent: string): string {
  return `(${since}::text is null or ${recent}::bigint =
    (select count(*) from change_kind n where n.tenant = ${tenant} and n.registered >= ${since}::text::xid8)
    + (select count(*) from change_actor n where n.tenant = ${tenant} and n.registered >= ${since}::text::xid8))`;
}

/**
 * A page near the newest of everything from a time on, and its exact total, from one snapshot; undefined where an entry
 * has a name that the dictionary does not know.
 */
export async function readWindowPage(
  pool: pg.Pool,
  tenant: string,
  page: { now: number; since: number; skip: number; size: number; dictionary: Dictionary },
): Promise<{ total: number; entries: EntryRow[] } | undefined> {
  const { rows } = await pool.query<Omit<EntryRow, 'actor'> & { total: number; kind: number | null; actor: number }>({
    name: 'window page',
    text: `select total, at, kind, actor, entity_id as "entityId", name, schema_version as "schemaVersion", related, paths
             from change_read_window($1, $2, $3, $4, $5)`,
    values: [tenant, page.now, page.since, page.skip, page.size],
  });
  const entries: EntryRow[] = [];
  for (const row of rows) {
    if (row.kind === null) break;
    const kind = page.dictionary.kindOf.get(row.kind);
    const actor = page.dictionary.actorOf.get(row.actor);
    if (kind === undefined || actor === undefined) return undefined;
    entries.push({ ...row, entity: kind.entity, type: kind.type, actor: actor.name });
  }
  return { total: rows[0]?.total ?? 0, entries };
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
export async function readDocumentsPage(pool: pg.Pool, tenant: string, page: DocumentsPage): Promise<TalliedPage> {
  return pageOf(
    await pool.query<PageRow>({
      name: 'documents page',
      text: documentsPage,
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
    }),
  );
}

const documentsPage = `
select total, current, at, type, entity, entity_id as "entityId", name, schema_version as "schemaVersion", actor,
       related, paths
  from change_read_documents($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::xid8, $13)`;

type PageRow = EntryRow & { total: number; current: boolean };

function pageOf({ rows }: { rows: PageRow[] }): TalliedPage {
  const [head] = rows;
  if (head === undefined) throw new Error('a page came without its total');
  return { total: head.total, current: head.current, entries: rows.slice(1) };
}

/** Arrays as change_page wants them: the scans of all intervals in one list, each set of kinds a text. */
function intervalColumns(intervals: readonly Interval[]): unknown[] {
  const kindSets = intervals.flatMap((interval) => interval.kindSets);
  const scanEnds: number[] = [];
  const sets: number[] = [];
  let setsBefore = 0;
  for (const interval of intervals) {
    for (const set of interval.sets) sets.push(setsBefore + set + 1);
    scanEnds.push(sets.length);
    setsBefore += interval.kindSets.length;
  }
  return [
    intervals.map((interval) => interval.since),
    intervals.map((interval) => interval.before),
    scanEnds,
    kindSets.map((set) => `{${set.join(',')}}`),
    intervals.flatMap((interval) => interval.actors),
    sets,
  ];
}

/** The names registered since a dictionary was read, and some that it may have; all of them from `since` '0'. */
export async function readNames(pool: pg.Pool, tenant: string, since: string): Promise<NamesRead> {
  const { rows } = await pool.query<{
    since: string;
    kind: number | null;
    entity: string;
    type: string;
    related_entities: string[];
    actor: number | null;
    name: string;
    recent: boolean;
  }>(
    `with snapshot as (select pg_snapshot_xmin(pg_current_snapshot()) as since)
     select s.since, n.kind, n.entity, n.type, n.related_entities, n.actor, n.name, n.registered >= s.since as recent
       from snapshot s
       left join (
         select kind, entity, type, related_entities, null::bigint as actor, null as name, registered
           from change_kind where tenant = $1 and registered >= $2::text::xid8
         union all
         select null, null, null, null, actor, name, registered
           from change_actor where tenant = $1 and registered >= $2::text::xid8
       ) as n on true`,
    [tenant, since],
  );
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

/** The total of the intervals, and the places of some of their entries, newest first. */
export async function readTalliedPlaces(
  transaction: DatabaseTransaction,
  tenant: string,
  page: { horizon: number; intervals: readonly Interval[]; skip: number; size: number },
): Promise<{ total: number; places: Place[] }> {
  const { rows } = await transaction.executeQuery<{ total: number } & Place>(
    CompiledQuery.raw('select total, at, sequence from change_page($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)', [
      tenant,
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
