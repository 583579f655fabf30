import { currentWork, doWork, requestLimit } from '../core/fairness/work.ts';
import type { Sealer } from '../core/sealing.ts';
import type { StopSignal } from '../core/stop-signal.ts';
import type { Restriction } from '../http/credentials.ts';
import { aroundDocument } from './documents/document-text.ts';
import { documentView } from './documents/search-documents.ts';
import {
  cutValues,
  type FittingDocument,
  firstPaths,
  fitDocument,
  valueLimits,
  wordsOfCut,
} from './entries/cut-values.ts';
import { changeIsGone, openRef } from './entries/entry-ref.ts';
import type { EntryRow, PageOfEntries } from './entries/entry-store.ts';
import { entryText, historyText } from './entries/entry-text.ts';
import { showEntries } from './entries/show-entries.ts';
import type { HistoryReads } from './history-reads.ts';
import { calendarIn, documentTime, firstMillisecondFrom } from './request-times.ts';
import type { FacetField } from './search/count-store.ts';
import { facetsView } from './search/facets.ts';
import type { FindPage } from './search/find-page.ts';
import { histogramView } from './search/histogram.ts';
import { parseOwnQuery, type QueryReader, requireField } from './search/plan/restriction.ts';

/** JSON text of a part of an answer. */
export interface HistoryText {
  readonly text: string;
  /** What it leaves out, in words; undefined where it leaves out nothing. */
  readonly left?: string | undefined;
  /** Of a list: how many values it has. */
  readonly shown?: number | undefined;
}

/** JSON text of the first entries of a page. */
interface PageText {
  readonly text: string;
  readonly shown: number;
  /** The number of entries of the page that the text leaves out. */
  readonly left: number;
  /** The number of entries shown in part, because each is longer than `maxBytes`. */
  readonly cut: number;
  readonly total: number;
}

export interface TenantReader extends Pick<QueryReader, 'scopes'> {
  readonly tenant: string;
  readonly restriction?: Restriction | undefined;
}

interface ChangesRequest extends Pick<QueryReader, 'scopes'> {
  q: string;
  page: number;
  size: number;
  maxBytes: number;
  withRef?: boolean | undefined;
  restriction?: Restriction | undefined;
  /** Cancels the query, in the database too. Default: the signal of the current work. */
  signal?: StopSignal | undefined;
}

interface CountRequest {
  q: string;
  by: 'time' | FacetField;
  size: number;
  buckets: number;
  timeZone?: string | undefined;
}

interface NameRequest {
  field: 'document' | 'path' | 'entity' | 'actor' | 'related.entity';
  entity?: string | undefined;
  prefix: string;
  changedBefore?: string | undefined;
  size: number;
}

interface DocumentTextRequest {
  entity: string;
  entityId: string;
  at?: string | undefined;
  changes?: number | undefined;
}

export type HistoryTexts = ReturnType<typeof createHistoryTexts>;

/**
 * The reads of the history as JSON texts of at most `maxBytes` each, for language models: modules that may read for a
 * client call them. All throw AnnalsErrors.
 */
export function createHistoryTexts({
  findPage,
  reads,
  sealer,
  now,
}: {
  findPage: FindPage;
  reads: HistoryReads;
  sealer: Sealer;
  now: () => number;
}) {
  async function namesOf({ tenant, restriction }: TenantReader, request: NameRequest) {
    const { field, entity, prefix, changedBefore, size } = request;
    if (field === 'path') return await reads.paths(tenant, { entity, prefix, size, restriction });
    requireField({ restriction }, field);
    if (field !== 'document') return await reads.names(tenant, { field, prefix, size, restriction });
    const before = changedBefore === undefined ? undefined : firstMillisecondFrom('changedBefore', changedBefore);
    const documents = await reads.documents(tenant, { entity, prefix, changedBefore: before, size, restriction });
    return documents.map(documentView);
  }

  return {
    async changes(tenant: string, request: ChangesRequest): Promise<PageText> {
      const { q, page, size, maxBytes, withRef = false, restriction, signal = currentWork()?.signal } = request;
      const query = parseOwnQuery(q, request);
      return await doWork({ tenant, signal, timeLimit: requestLimit }, async () => {
        const skip = (page - 1) * size;
        const read = await findPage(tenant, query, { skip, size, inPieces: true, withIdentity: withRef, restriction });
        const found = await showEntries(sealer, tenant, read, { ref: withRef, restriction });
        const { entries, cut } = await fittingEntries(found, maxBytes, maxBytes / 4);
        const onPage = Math.max(0, Math.min(size, found.total - skip));
        const text = historyText({ ...found, entries }, { page, size });
        return { text, shown: entries.length, left: onPage - entries.length, cut, total: found.total };
      });
    },

    async counts(
      { tenant, restriction, scopes }: TenantReader,
      { q, by, size, buckets: maxBuckets, timeZone }: CountRequest,
      maxBytes: number,
    ): Promise<HistoryText> {
      const calendar = timeZone === undefined ? undefined : calendarIn(timeZone);
      if (by !== 'time') requireField({ restriction, scopes }, by);
      const query = parseOwnQuery(q, { restriction, scopes });
      if (by === 'time') {
        const histogram = await reads.histogram(tenant, query, { maxBuckets, calendar, restriction });
        return { text: JSON.stringify(histogramView(histogram)) };
      }
      const { values, ...rest } = facetsView(await reads.facets(tenant, query, { field: by, size, restriction }));
      const fitting = firstThatFit(values, maxBytes - Buffer.byteLength(JSON.stringify(rest)) - 12);
      return {
        text: JSON.stringify({ ...rest, values: fitting }),
        left: wordsOfLeft(values.length - fitting.length),
      };
    },

    async names(reader: TenantReader, request: NameRequest, maxBytes: number): Promise<HistoryText> {
      const values = await namesOf(reader, request);
      const fitting = firstThatFit<unknown>(values, maxBytes - 64);
      return {
        text: JSON.stringify({ field: request.field, values: fitting }),
        left: wordsOfLeft(values.length - fitting.length),
        shown: values.length,
      };
    },

    async change({ tenant, restriction }: TenantReader, ref: string, maxBytes: number): Promise<HistoryText> {
      const found = await reads.entry(tenant, openRef(sealer, tenant, ref), { withContext: false, restriction });
      if (found === undefined) throw changeIsGone();
      const shown = await showEntries(sealer, tenant, found, { ref: true, restriction });
      const { entries, cut } = await fittingEntries(shown, maxBytes, maxBytes);
      const [entry] = entries;
      if (entry === undefined) throw changeIsGone();
      return { text: entryText(entry), left: cut === 0 ? undefined : 'What `cut` names is cut or left out.' };
    },

    async document(
      { tenant, restriction }: TenantReader,
      { entity, entityId, at, changes }: DocumentTextRequest,
      maxBytes: number,
    ): Promise<HistoryText> {
      const request = { entity, entityId, when: documentTime({ at, changes }, now) };
      const { found, release } = await reads.document(tenant, { ...request, restriction });
      try {
        const { before, after } = aroundDocument(request, found);
        if (found.document === undefined) return { text: `${before}${after}` };
        const room = maxBytes - Buffer.byteLength(before) - Buffer.byteLength(after);
        const { text, cut, left } = await fitDocument(found.document, room);
        return { text: `${before}${text}${after}`, left: wordsOfDocument(cut, left) };
      } finally {
        release();
      }
    },
  };
}

/**
 * The first entries that fit into so many bytes together. An entry that does not fit alone is cut to `maxBytesOfLong`.
 * Later pieces of a long page are not read.
 */
async function fittingEntries({ entries, pieces }: PageOfEntries, maxBytes: number, maxBytesOfLong: number) {
  const fitting: EntryRow[] = [];
  let cut = 0;
  let room = maxBytes;
  for await (const piece of piecesOf(entries, pieces)) {
    for (const whole of piece) {
      const isTooLong = bytesOf(whole) > maxBytes;
      const entry = isTooLong ? await cutEntry(whole, maxBytesOfLong) : whole;
      room -= bytesOf(entry);
      if (room < 0) return { entries: fitting, cut };
      fitting.push(entry);
      if (isTooLong) cut += 1;
    }
  }
  return { entries: fitting, cut };
}

async function* piecesOf(entries: readonly EntryRow[], pieces: PageOfEntries['pieces']) {
  yield entries;
  if (pieces !== undefined) yield* pieces;
}

/** Bytes of the words about what is left out. */
const maxBytesOfLeft = 100;

/** Cuts values of an entry, and leaves out paths if necessary, to have at most `maxBytes`. `cut` lists both. */
async function cutEntry(entry: EntryRow, maxBytes: number): Promise<EntryRow> {
  for (const limit of valueLimits) {
    const [found] = await cutValues([entry.paths], limit);
    if (found === undefined) continue;
    const shown = { ...entry, paths: found.paths, cut: wordsOfCut(found) };
    if (bytesOf(shown) <= maxBytes) return shown;
  }
  const bytesOfRelated = Buffer.byteLength(entry.related ?? '');
  const hasManyRelated = bytesOfRelated > maxBytes / 4;
  const related = hasManyRelated ? null : entry.related;
  const bytesOfRest = bytesOf({ ...entry, related, paths: '{}', cut: [] });
  const { paths, cut, left } = await firstPaths(entry.paths, maxBytes - bytesOfRest - maxBytesOfLeft);
  const leftOut = [
    ...(left > 0 ? [`${left} further paths`] : []),
    ...(hasManyRelated ? [`related (${bytesOfRelated} bytes)`] : []),
  ];
  return { ...entry, related, paths, cut: [...cut, ...leftOut] };
}

function bytesOf(entry: EntryRow): number {
  return Buffer.byteLength(entryText(entry));
}

/** Bytes of the names of members whose values are cut. */
const maxNamedBytes = 2_000;

/** Names stand in quotes, as JSON texts, so that none of them reads like an instruction. */
function wordsOfDocument(cut: FittingDocument['cut'], left: number): string | undefined {
  const all = cut.map(([member, bytes]) => `${JSON.stringify(member.slice(0, 100))} (${bytes} bytes)`);
  const named = firstThatFit(all, maxNamedBytes);
  const rest = all.length - named.length;
  const words = [
    ...(all.length === 0
      ? []
      : [`Cut are the values of ${named.join(', ')}${rest === 0 ? '' : ` and ${rest} others`}.`]),
    ...(left === 0 ? [] : [`The last ${left} members are left out.`]),
  ];
  return words.length === 0 ? undefined : words.join(' ');
}

function firstThatFit<Item>(items: readonly Item[], maxBytes: number): Item[] {
  let room = maxBytes;
  const end = items.findIndex((item) => {
    room -= Buffer.byteLength(JSON.stringify(item)) + 1;
    return room < 0;
  });
  return end === -1 ? [...items] : items.slice(0, end);
}

function wordsOfLeft(count: number): string | undefined {
  return count === 0 ? undefined : `The last ${count} values are left out: together they are too long.`;
}
