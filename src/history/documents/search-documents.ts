import { sql } from 'kysely';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { uuidOf } from '../../core/text-hash.ts';
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
/** Maximum documents that are looked up one by one. More of them are found sooner in the order of time. */
export const maxCandidates = 5_000;
const end: Place = { at: Number.MAX_SAFE_INTEGER, sequence: 0 };

/** What a search reads at most before it takes another plan. */
const defaultLimits = { portions: entriesOfPortions, candidates: maxCandidates };

/**
 * The documents whose id begins with a prefix, or whose last name has its words, the latest changed first. Without
 * `changedBefore` those whose id is the prefix come first, and those whose name is it second; with it both are left out.
 * If many documents come into question, the newest entries are read first, and if these have too few documents, the
 * newest entry of each document.
 */
export async function searchDocuments(
  snapshot: HistorySnapshot,
  tenant: string,
  { entity, prefix, changedBefore, size }: DocumentSearch,
  limits: typeof defaultLimits = defaultLimits,
): Promise<FoundDocument[]> {
  const { entities, source } = sourceOf(snapshot, tenant, entity);
  if (entities.length === 0) return [];
  const match = documentMatch(prefix);
  const slice = new TimeSlice();
  const isExact = ({ entityId, name }: DocumentEntry) => !match.isAny && (entityId === prefix || match.isName(name));

  async function shown(documents: readonly DocumentEntry[]): Promise<FoundDocument[]> {
    const named = await withNames(source, documents.slice(0, size));
    return named.map(({ entity: place, entityId, name, at }) => {
      return { entity: entities[place] ?? '', entityId, name, at };
    });
  }

  const candidates = match.isAny
    ? undefined
    : await findCandidates(source, entities, { prefix, match, max: limits.candidates });
  if (candidates !== undefined) {
    const newest = await readNewest(source, candidates);
    const old = newest.filter(({ at }) => changedBefore === undefined || at < changedBefore);
    const matching = await matchingOf(source, old, match, slice);
    const [exact, others] = parted(matching, isExact);
    if (changedBefore !== undefined) return await shown(others);
    const [ofId, ofName] = parted(exact, ({ entityId }) => entityId === prefix);
    return await shown([...ofId, ...ofName, ...others]);
  }

  const isFirstPart = changedBefore === undefined && !match.isAny;
  const ofId = isFirstPart ? await documentsOfId(source, entities, prefix) : [];
  const namesakes = isFirstPart ? await namesakesOf(source, entities, { prefix, match, max: limits.candidates }) : [];
  const ofName = (namesakes ?? []).filter(({ entityId }) => entityId !== prefix);
  const others: DocumentEntry[] = [];
  const isEnough = () => ofId.length + ofName.length + (namesakes === undefined ? 0 : others.length) >= size;
  /** Adds the documents that match, given by their newest entries before `changedBefore`. */
  async function add(latest: readonly DocumentEntry[]): Promise<void> {
    const matching = await matchingOf(source, latest, match, slice);
    const touched = changedBefore === undefined ? matching : await withoutEntriesFrom(source, matching, changedBefore);
    const [exact, further] = parted(touched, isExact);
    others.push(...further);
    if (namesakes === undefined) ofName.push(...exact.filter(({ entityId }) => entityId !== prefix));
  }

  const seen = new Set<string>();
  const isFirst = ({ document, entity: place }: DocumentEntry) => {
    const before = seen.size;
    return seen.add(`${document}${place}`).size > before;
  };
  let before = changedBefore === undefined ? end : { at: changedBefore, sequence: 0 };
  let isRead = false;
  for (const max of limits.portions) {
    const entries = await readBefore(source, before, max);
    await add(entries.filter(isFirst));
    before = entries.at(-1) ?? before;
    isRead = entries.length < max;
    if (isRead || isEnough()) break;
  }
  if (!isRead && !isEnough()) {
    for await (const latest of latestBefore(source, before)) {
      await add(latest);
      if (isEnough()) break;
    }
  }
  return await shown([...ofId, ...ofName, ...others]);
}

function parted<Item>(all: readonly Item[], is: (item: Item) => boolean): [Item[], Item[]] {
  const parts = Map.groupBy(all, is);
  return [parts.get(true) ?? [], parts.get(false) ?? []];
}

/** The documents of any entity type that have an id, the latest changed first. */
async function documentsOfId(
  source: DocumentSource,
  entities: readonly string[],
  entityId: string,
): Promise<DocumentEntry[]> {
  const document = uuidOf(entityId);
  const newest = await readNewest(
    source,
    entities.map((_, entity) => ({ document, entity })),
  );
  return newest.filter((found) => found.entityId === entityId);
}

/** The documents that have a name, the latest changed first; undefined if too many have its words. */
async function namesakesOf(
  source: DocumentSource,
  entities: readonly string[],
  search: CandidateSearch,
): Promise<DocumentEntry[] | undefined> {
  const { match } = search;
  if (match.words.length === 0) return [];
  const candidates = await candidatesByWords(source, entities, search, true);
  if (candidates === undefined) return undefined;
  const named = await withNames(source, await readNewest(source, candidates));
  return named.filter(({ name }) => match.isName(name));
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

/** Maximum entries read by the beginning of their ids. */
const maxEntriesOfIds = 20_000;

interface CandidateSearch {
  readonly prefix: string;
  readonly match: DocumentMatch;
  readonly max?: number;
}

/**
 * Documents that include those that match; undefined if there may be too many. `entities` are the names of the entity
 * types of the source.
 */
export async function findCandidates(
  source: DocumentSource,
  entities: readonly string[],
  search: CandidateSearch,
): Promise<DocumentOfEntity[] | undefined> {
  const { prefix, match, max = maxCandidates } = search;
  const byId = await candidatesById(source, prefix, max);
  if (byId === undefined || match.words.length === 0) return byId;
  const byWords = await candidatesByWords(source, entities, search, false);
  if (byWords === undefined) return undefined;
  const all = new Map([...byId, ...byWords].map((found) => [`${found.document}${found.entity}`, found]));
  return all.size > max ? undefined : [...all.values()];
}

/** Documents that include those whose names match, or with `isWhole` those whose name is the text. */
async function candidatesByWords(
  source: DocumentSource,
  entities: readonly string[],
  { prefix, match, max = maxCandidates }: CandidateSearch,
  isWhole: boolean,
): Promise<DocumentOfEntity[] | undefined> {
  const matches = isWhole ? match.isName : match.matchesName;
  const unfolded = await unfoldedCandidates(source, matches, max);
  if (unfolded === undefined) return undefined;
  const keys = await keysByWords(source, prefix, { isWhole, max });
  if (keys === undefined) return undefined;
  const placesOf = Map.groupBy(entities.keys(), (place) => entityNumber(entities[place] ?? ''));
  const known = keys.filter(({ entity }) => placesOf.has(entity));
  const byWords = (await documentsOf(source, known)).flatMap(({ key, document }) =>
    (placesOf.get(key.entity) ?? []).map((entity) => ({ document, entity })),
  );
  const all = new Map([...unfolded, ...byWords].map((found) => [`${found.document}${found.entity}`, found]));
  return [...all.values()];
}

async function candidatesById(
  { transaction, tenant, since, kinds, entityOfKind }: DocumentSource,
  prefix: string,
  max: number,
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
  return rows.length > max ? undefined : rows.map(({ document, entity }) => ({ document, entity }));
}

/** Documents recorded since the last fold. */
async function unfoldedCandidates(
  { transaction, tenant, kinds, entityOfKind }: DocumentSource,
  matches: (name: string) => boolean,
  max: number,
): Promise<DocumentOfEntity[] | undefined> {
  const { rows } = await sql<DocumentOfEntity & { name: string }>`
    select distinct n.document, k.entity, n.name
      from change_delta d
      cross join lateral unnest(d.kinds, d.documents, d.names) as n (kind, document, name)
      join unnest(${kinds}::bigint[], ${entityOfKind}::integer[]) as k (kind, entity) on k.kind = n.kind
      where d.tenant = ${tenant} and n.name is not null
      limit ${sql.lit(max + 1)}`.execute(transaction);
  if (rows.length > max) return undefined;
  return rows.filter(({ name }) => matches(name)).map(({ document, entity }) => ({ document, entity }));
}

/**
 * The rows of the directory with all words of a text; undefined if there may be too many. With `isWhole` those that have
 * these alone, which leaves out a document whose row another one shares.
 */
async function keysByWords(
  { transaction, tenant }: DocumentSource,
  prefix: string,
  { isWhole, max }: { readonly isWhole: boolean; readonly max: number },
): Promise<DirectoryKey[] | undefined> {
  // Neither tenants nor words have a quote or a backslash.
  const words = foldedWords(prefix);
  const query = words.map((word) => `'${tenant}/${word}'${isWhole ? '' : ':*'}`).join(' & ');
  const { rows } = await sql<DirectoryKey>`
    select d.document, d.entity from change_document d
      where d.tenant = ${tenant}
        and array_to_tsvector(string_to_array(
          d.tenant || '/' || replace(d.words, ' ', ' ' || d.tenant || '/'), ' ')) @@ ${query}::tsquery
        ${isWhole ? sql`and d.words = ${words.join(' ')}` : sql``}
      limit ${sql.lit(max + 1)}`.execute(transaction);
  return rows.length > max ? undefined : rows;
}
