import type {
  Actor,
  ChangeEntry,
  ChangeFacets,
  ChangeHistogram,
  DocumentNames,
  ExactChangeEntry,
  ExactDocumentAtMoment,
} from '@annals/client';
import type { JsonObject, JsonValue } from '@annals/client/json';
import { bareGlob } from '../../../src/query/written.ts';
import { counted } from '../components/numbers.ts';
import { zoneName } from '../components/times.ts';
import { annals } from './annals.ts';
import { readsContext } from './session.ts';

/** What a path was and what it became. Absent is not null. */
export interface PathChange {
  readonly before?: JsonValue | undefined;
  readonly after?: JsonValue | undefined;
}

/** A change entry with its values as they were written. */
export interface Entry
  extends Pick<
    ChangeEntry,
    'at' | 'type' | 'entity' | 'entityId' | 'actorId' | 'onBehalfOf' | 'correlationId' | 'related' | 'recordedBy'
  > {
  /** Undefined for sessions that see nothing of who made changes. */
  readonly actor: string | undefined;
  readonly name: string | undefined;
  readonly schemaVersion: string | undefined;
  readonly paths: ReadonlyMap<string, PathChange>;
  /** The context of an entry, for clients that may read it. */
  readonly context: JsonObject | undefined;
  /** Leads back to this entry. */
  readonly ref: string;
  /** Paths whose values are cut. */
  readonly cut: ReadonlySet<string>;
}

export interface EntryPage {
  readonly items: readonly Entry[];
  readonly page: number;
  readonly totalElements: number;
  readonly totalPages: number;
}

/** Bytes of a value in a list; `readEntry` has the whole value. */
const valueLimit = 256;
const textLimit = 8_192;

interface EntrySearch {
  readonly q: string;
  readonly page: number;
  readonly size: number;
  /** Whether entries have their context, for those who may read it. */
  readonly withContext?: boolean;
  /** Whether long values come with more of their text: it was searched for something in them. */
  readonly withTexts?: boolean;
}

/** A page of entries, newest first, with the exact total. Long values are cut. */
export async function readEntries(
  { withContext = false, withTexts = false, ...search }: EntrySearch,
  signal: AbortSignal,
): Promise<EntryPage> {
  const context = withContext && readsContext() ? true : undefined;
  const found = await annals().exact.history.list(
    { ...search, context, ref: true, valueLimit: withTexts ? textLimit : valueLimit },
    { signal },
  );
  const { totalElements, totalPages } = found;
  return { items: found.items.map(entryOf), page: found.page, totalElements, totalPages };
}

/** How many entries match. */
export async function countEntries(q: string, signal: AbortSignal): Promise<number> {
  return (await annals().history.list({ q, size: 1, valueLimit }, { signal })).totalElements;
}

/** One entry with all of its values; for those who may read it, with its context and how it was recorded. */
export async function readEntry(ref: string, signal: AbortSignal): Promise<Entry> {
  const context = readsContext() ? true : undefined;
  return { ...entryOf(await annals().exact.history.entry(ref, { context }, { signal })), ref };
}

/** How many entries match, over time and by type. Days are those of the clock that the reader has chosen. */
export async function readHistogram(q: string, buckets: number, signal: AbortSignal): Promise<ChangeHistogram> {
  return await annals().history.histogram({ q, buckets, timeZone: zoneName() }, { signal });
}

export type FacetField = 'entity' | 'type' | 'actor' | 'actorId' | 'onBehalfOf' | 'path' | 'context.ip';

/** The values of a field that most of the matching entries have. */
export async function readFacets(
  q: string,
  field: FacetField,
  size: number,
  signal: AbortSignal,
): Promise<ChangeFacets> {
  return await annals().history.facets({ q, field, size }, { signal });
}

export interface NameSearch {
  readonly field: 'entity' | 'actor' | 'related.entity' | 'path';
  readonly prefix: string;
  /** Whose paths; left out: those of all entity types. */
  readonly entity?: string | undefined;
  readonly size?: number;
}

/** Names that begin with a text, ignoring case. */
export async function readNames(
  { field, prefix, entity, size = 12 }: NameSearch,
  signal: AbortSignal,
): Promise<readonly string[]> {
  return (await annals().history.names({ field, prefix, entity, size }, { signal })).values;
}

/** Values of a field that the service does not list by name. */
export interface ValueSearch {
  readonly field: 'actorId' | 'onBehalfOf' | 'context.ip';
  readonly prefix: string;
}

/** A name or value that is known, and what it means. */
export interface KnownName {
  readonly name: string;
  readonly hint: string;
}

/** What is known of a field and begins with a text: names, ids with their latest name, or values of the last 30 days. */
export async function readKnown(search: NameSearch | ValueSearch, signal: AbortSignal): Promise<readonly KnownName[]> {
  const { field, prefix } = search;
  const size = 12;
  if (field === 'actorId') {
    const actors = await findActors(prefix, size, signal);
    return actors.map(({ actorId, names }) => ({ name: actorId, hint: names[0]?.name ?? '' }));
  }
  if (field === 'onBehalfOf' || field === 'context.ip') {
    const glob = prefix === '' ? undefined : bareGlob([prefix, '']);
    const { values } = await readFacets(glob === undefined ? '' : `${field}:${glob}`, field, size, signal);
    return values
      .filter(({ value }) => value.startsWith(prefix))
      .map(({ value, count }) => ({ name: value, hint: counted(count, 'change') }));
  }
  return (await readNames({ ...search, field }, signal)).map((name) => ({ name, hint: '' }));
}

/** The actors whose id, or one of whose names, begins with a text. */
export async function findActors(prefix: string, pageSize: number, signal: AbortSignal): Promise<readonly Actor[]> {
  return (await annals().actors.list({ prefix, pageSize }, { signal })).items;
}

/** The actor with an id; undefined if the history has no change of it any more. */
export async function readActor(id: string, signal: AbortSignal): Promise<Actor | undefined> {
  // Among ids and names that begin so, the id itself may come on a later page.
  for await (const actor of annals().actors.list({ prefix: id, pageSize: 500 }, { signal }))
    if (actor.actorId === id) return actor;
  return undefined;
}

/** A document by its last name. */
type FoundDocument = DocumentNames['values'][number];

interface DocumentSearch {
  /** The beginning of the id, or of words of the name; empty: any document. */
  readonly text: string;
  readonly entity?: string | undefined;
  /** Only documents whose last change is before this moment. */
  readonly changedBefore?: string | undefined;
  /** At most 100. */
  readonly size: number;
}

/** Documents by their ids and names: an exact id first, exact names second, then the latest changed. */
export async function findDocuments(
  { text, changedBefore, ...filter }: DocumentSearch,
  signal: AbortSignal,
): Promise<readonly FoundDocument[]> {
  const read = async (before?: string) => {
    const search = { field: 'document', prefix: text, changedBefore: before, ...filter } as const;
    return (await annals().history.names(search, { signal })).values;
  };
  if (changedBefore === undefined || text === '') return await read(changedBefore);
  // With a moment the service leaves out the exact ones, which come first without it.
  const [first, others] = await Promise.all([read(), read(changedBefore)]);
  const moment = Date.parse(changedBefore);
  const exact = first.filter((found) => isExactly(found, text) && Date.parse(found.at) < moment);
  return [...exact, ...others].slice(0, filter.size);
}

function isExactly({ entityId, name }: FoundDocument, text: string): boolean {
  return entityId === text || name?.toLowerCase() === text.toLowerCase();
}

/** A document as it was at a moment. `document` is left out before its creation and after its deletion. */
export type DocumentState = ExactDocumentAtMoment;

interface DocumentMoment {
  readonly entity: string;
  readonly entityId: string;
  readonly at?: string | undefined;
  /** After so many of its changes. */
  readonly changes?: number | undefined;
}

export async function readDocument(moment: DocumentMoment, signal: AbortSignal): Promise<DocumentState> {
  return await annals().exact.history.document(moment, { signal });
}

function entryOf(entry: ExactChangeEntry): Entry {
  const { name, schemaVersion, context, ref = '', cut = [] } = entry;
  return { ...entry, name, schemaVersion, context, ref, cut: new Set(cut) };
}
