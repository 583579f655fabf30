import { sql } from 'kysely';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { Place } from '../entries/entry-store.ts';
import { textAfter } from '../search/predicate.ts';
import { type HistorySnapshot, kindsShown } from '../search/snapshot.ts';
import {
  type DirectoryKey,
  type DocumentEntry,
  type DocumentOfEntity,
  type DocumentSource,
  documentsOf,
  latestBefore,
  readBefore,
  readNewest,
  withNames,
  withoutEntriesFrom,
} from './latest-store.ts';
import { type DocumentMatch, documentMatch, entityNumber, foldedWords } from './name-documents.ts';

export interface DocumentSearch {
  /** Default: any entity type. */
  readonly entity?: string | undefined;
  readonly prefix: string;
  /** Milliseconds since 1970: only documents whose last change is before it. */
  readonly changedBefore?: number | undefined;
  readonly size: number;
}

/** A document with the time of its last change, in milliseconds since 1970. */
export interface FoundDocument {
  readonly entity: string;
  readonly entityId: string;
  readonly name: string | null;
  readonly at: number;
}

/** A document of the directory, as HTTP and tools return it. */
export function documentView({ entity, entityId, name, at }: FoundDocument) {
  return { entity, entityId, ...(name === null ? {} : { name }), at: new Date(at).toISOString() };
}

/** Entries of the portions that are read first. They nearly always have as many documents as requested. */
export const entriesOfPortions = [100, 1_000, 4_000, 16_000];
const end: Place = { at: Number.MAX_SAFE_INTEGER, sequence: 0 };

/**
 * The documents whose id begins with a prefix, or whose last name has its words, the latest changed first. If many come
 * into question, the newest entries are read first, and if these have too few documents, the newest entry of each
 * document.
 */
export async function searchDocuments(
  snapshot: HistorySnapshot,
  tenant: string,
  { entity, prefix, changedBefore, size }: DocumentSearch,
  portions: readonly number[] = entriesOfPortions,
): Promise<FoundDocument[]> {
  const { entities, source } = sourceOf(snapshot, tenant, entity);
  if (entities.length === 0) return [];
  const match = documentMatch(prefix);
  const slice = new TimeSlice();

  async function shown(documents: readonly DocumentEntry[]): Promise<FoundDocument[]> {
    const named = await withNames(source, documents.slice(0, size));
    return named.map(({ entity: place, entityId, name, at }) => {
      return { entity: entities[place] ?? '', entityId, name, at };
    });
  }

  const candidates = match.isAny ? undefined : await findCandidates(source, entities, { prefix, match });
  if (candidates !== undefined) {
    const newest = await readNewest(source, candidates);
    const old = newest.filter(({ at }) => changedBefore === undefined || at < changedBefore);
    return await shown(await matchingOf(source, old, match, slice));
  }

  const found: DocumentEntry[] = [];
  /** Adds the documents that match, given by their newest entries before `changedBefore`. */
  async function add(latest: readonly DocumentEntry[]): Promise<void> {
    const matching = await matchingOf(source, latest, match, slice);
    const touched = changedBefore === undefined ? matching : await withoutEntriesFrom(source, matching, changedBefore);
    found.push(...touched);
  }

  const seen = new Set<string>();
  const isFirst = ({ document, entity: place }: DocumentEntry) => {
    const before = seen.size;
    return seen.add(`${document}${place}`).size > before;
  };
  let before = changedBefore === undefined ? end : { at: changedBefore, sequence: 0 };
  let isRead = false;
  for (const max of portions) {
    const entries = await readBefore(source, before, max);
    await add(entries.filter(isFirst));
    before = entries.at(-1) ?? before;
    isRead = entries.length < max;
    if (isRead || found.length >= size) break;
  }
  if (!isRead && found.length < size) {
    for await (const latest of latestBefore(source, before)) {
      await add(latest);
      if (found.length >= size) break;
    }
  }
  return await shown(found);
}

function sourceOf(
  snapshot: HistorySnapshot,
  tenant: string,
  entity: string | undefined,
): { entities: string[]; source: DocumentSource } {
  const { transaction, dictionary, horizon } = snapshot;
  const shown = kindsShown(snapshot, entity);
  const kinds = shown ?? dictionary.kinds;
  const entities = [...new Set(kinds.map((kind) => kind.entity))];
  const placeOf = new Map(entities.map((name, place) => [name, place]));
  const source = {
    transaction,
    tenant,
    since: horizon,
    kinds: kinds.map(({ id }) => id),
    entityOfKind: kinds.map((kind) => placeOf.get(kind.entity) ?? 0),
    isEveryKind: shown === undefined,
  };
  return { entities, source };
}

async function matchingOf(
  source: DocumentSource,
  latest: readonly DocumentEntry[],
  match: DocumentMatch,
  slice: TimeSlice,
): Promise<readonly DocumentEntry[]> {
  if (match.isAny) return latest;
  const matching: DocumentEntry[] = [];
  const named = match.words.length === 0 ? latest : await withNames(source, latest);
  for (const document of named) {
    if (slice.isDue) await slice.rest();
    if (match.matchesId(document.entityId) || match.matchesName(document.name)) matching.push(document);
  }
  return matching;
}

/** Maximum documents that are looked up one by one. More of them are found sooner in the order of time. */
export const maxCandidates = 5_000;
/** Maximum entries read by the beginning of their ids. */
const maxEntriesOfIds = 20_000;

/**
 * Documents that include those that match; undefined if there may be too many. `entities` are the names of the entity
 * types of the source.
 */
export async function findCandidates(
  source: DocumentSource,
  entities: readonly string[],
  { prefix, match }: { prefix: string; match: DocumentMatch },
): Promise<DocumentOfEntity[] | undefined> {
  const byId = await candidatesById(source, prefix);
  if (byId === undefined || match.words.length === 0) return byId;
  const unfolded = await unfoldedCandidates(source, match);
  if (unfolded === undefined) return undefined;
  const keys = await keysByWords(source, prefix);
  if (keys === undefined) return undefined;
  const placesOf = Map.groupBy(entities.keys(), (place) => entityNumber(entities[place] ?? ''));
  const known = keys.filter(({ entity }) => placesOf.has(entity));
  const byWords = (await documentsOf(source, known)).flatMap(({ key, document }) =>
    (placesOf.get(key.entity) ?? []).map((entity) => ({ document, entity })),
  );
  const all = new Map([...byId, ...unfolded, ...byWords].map((found) => [`${found.document}${found.entity}`, found]));
  return all.size > maxCandidates ? undefined : [...all.values()];
}

async function candidatesById(
  { transaction, tenant, since, kinds, entityOfKind }: DocumentSource,
  prefix: string,
): Promise<DocumentOfEntity[] | undefined> {
  const before = textAfter(prefix);
  const entries = (isShort: boolean) => sql`(
    select e.kind, e.entity_id from change_entry e
      where e.tenant = ${tenant} and e.kind = any (${kinds}::bigint[]) and e.at >= ${since}
        and e.entity_id >= ${prefix} ${before === undefined ? sql`` : sql`and e.entity_id < ${before}`}
        and octet_length(e.entity_id) ${isShort ? sql`<=` : sql`>`} change_short_id()
      limit ${sql.lit(maxEntriesOfIds)})`;
  const { rows } = await sql<DocumentOfEntity & { entries: number }>`
    select change_document(found.entity_id) as document, k.entity, sum(found.entries)::bigint as entries
      from (
        select e.kind, e.entity_id, count(*) as entries
          from (${entries(true)} union all ${entries(false)}) as e group by e.kind, e.entity_id
      ) as found
      join unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as k (kind, entity) on k.kind = found.kind
      group by 1, 2`.execute(transaction);
  if (rows.reduce((sum, row) => sum + row.entries, 0) >= maxEntriesOfIds) return undefined;
  return rows.length > maxCandidates ? undefined : rows.map(({ document, entity }) => ({ document, entity }));
}

/** Documents recorded since the last fold. */
async function unfoldedCandidates(
  { transaction, tenant, kinds, entityOfKind }: DocumentSource,
  match: DocumentMatch,
): Promise<DocumentOfEntity[] | undefined> {
  const { rows } = await sql<DocumentOfEntity & { name: string }>`
    select distinct n.document, k.entity, n.name
      from change_delta d
      cross join lateral unnest(d.kinds, d.documents, d.names) as n (kind, document, name)
      join unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as k (kind, entity) on k.kind = n.kind
      where d.tenant = ${tenant} and n.name is not null
      limit ${sql.lit(maxCandidates + 1)}`.execute(transaction);
  if (rows.length > maxCandidates) return undefined;
  return rows.filter(({ name }) => match.matchesName(name)).map(({ document, entity }) => ({ document, entity }));
}

/** The rows of the directory with all words of a text; undefined if there may be too many. */
async function keysByWords(
  { transaction, tenant }: DocumentSource,
  prefix: string,
): Promise<DirectoryKey[] | undefined> {
  // Neither tenants nor words have a quote or a backslash.
  const words = foldedWords(prefix).map((word) => `'${tenant}/${word}':*`);
  const { rows } = await sql<DirectoryKey>`
    select d.document, d.entity from change_document d
      where d.tenant = ${tenant}
        and array_to_tsvector(string_to_array(
          d.tenant || '/' || replace(d.words, ' ', ' ' || d.tenant || '/'), ' ')) @@ ${words.join(' & ')}::tsquery
      limit ${sql.lit(maxCandidates + 1)}`.execute(transaction);
  return rows.length > maxCandidates ? undefined : rows;
}
