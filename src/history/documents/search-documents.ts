import { TimeSlice } from '../../core/concurrency/time-slice.ts';
import type { Place } from '../entries/entry-store-new.ts';
import { type HistorySnapshot, kindsShown } from '../search/snapshots.ts';
import { findCandidates } from './candidates.ts';
import {
  type DocumentEntry,
  type DocumentSource,
  latestBefore,
  readBefore,
  readNewest,
  withNames,
  withoutEntriesFrom,
} from './latest-store.ts';
import { type DocumentMatch, documentMatch } from './words.ts';

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

/** Entries of the portions that are read first. They nearly always have as many documents as the caller wants. */
export const entriesOfPortions = [100, 1_000, 4_000, 16_000];
/** After each entry. */
const end: Place = { at: Number.MAX_SAFE_INTEGER, sequence: 0 };

/**
 * The documents whose id begins with a prefix, or whose last name has its words, the latest changed first. Where many come
 * into question, it reads the newest entries first; where these have too few documents, the newest entry of each document.
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
  const found: DocumentEntry[] = [];
  const seen = new Set<string>();
  const slice = new TimeSlice();

  /** Adds those of the documents that match, given by their newest entries before `changedBefore`. */
  async function add(latest: readonly DocumentEntry[]): Promise<void> {
    const matching = await matchingOf(source, latest, match, slice);
    const touched = changedBefore === undefined ? matching : await withoutEntriesFrom(source, matching, changedBefore);
    found.push(...touched);
  }

  async function shown(documents: readonly DocumentEntry[]): Promise<FoundDocument[]> {
    const named = await withNames(source, documents.slice(0, size));
    return named.map(({ entity: place, entityId, name, at }) => ({
      entity: entities[place] ?? '',
      entityId,
      name,
      at,
    }));
  }

  const candidates = match.isAny ? undefined : await findCandidates(source, entities, { prefix, match });
  if (candidates !== undefined) {
    const newest = await readNewest(source, candidates);
    const old = newest.filter(({ at }) => changedBefore === undefined || at < changedBefore);
    return await shown(await matchingOf(source, old, match, slice));
  }

  let before = changedBefore === undefined ? end : { at: changedBefore, sequence: 0 };
  let isRead = false;
  for (const max of portions) {
    const entries = await readBefore(source, before, max);
    await add(entries.filter((entry) => isFirst(entry, seen)));
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

/** The entries of an entity type, or of all. */
function sourceOf(
  snapshot: HistorySnapshot,
  tenant: string,
  entity: string | undefined,
): { entities: string[]; source: DocumentSource } {
  const { transaction, dictionary, horizon } = snapshot;
  const shown = kindsShown(snapshot, entity);
  const kinds = shown ?? dictionary.kinds;
  const placeOf = new Map<string, number>();
  for (const kind of kinds) if (!placeOf.has(kind.entity)) placeOf.set(kind.entity, placeOf.size);
  const source = {
    transaction,
    tenant,
    since: horizon,
    kinds: kinds.map(({ id }) => id),
    entityOfKind: kinds.map((kind) => placeOf.get(kind.entity) ?? 0),
    isEveryKind: shown === undefined,
  };
  return { entities: [...placeOf.keys()], source };
}

/** Whether no newer entry of the document was seen. */
function isFirst({ document, entity }: DocumentEntry, seen: Set<string>): boolean {
  const before = seen.size;
  seen.add(`${document}${entity}`);
  return seen.size > before;
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
