import type { Sealer } from '../core/sealing.ts';
import type { Restriction } from '../http/credentials.ts';
import { fittingEntries } from './answer.ts';
import { aroundDocument } from './documents/document-text.ts';
import { documentView } from './documents/search-documents.ts';
import { type FittingDocument, fitDocument } from './entries/cut-values.ts';
import { changeIsGone, openRef } from './entries/entry-ref.ts';
import { entryText } from './entries/entry-text.ts';
import { showEntries } from './entries/show-entries.ts';
import type { HistoryReads } from './history-reads.ts';
import { calendarIn, documentTime, firstMillisecondFrom } from './request-times.ts';
import type { FacetField } from './search/count-store.ts';
import { facetsView, histogramView } from './search/facets.ts';
import { parseOwnQuery, requireActors } from './search/plan/restriction.ts';

/** JSON text of a part of an answer, and what it leaves out, in words; undefined where it leaves out nothing. */
export interface TextAnswer {
  readonly text: string;
  readonly left?: string | undefined;
  /** Of a list: how many values it has. */
  readonly shown?: number | undefined;
}

export interface AskedCounts {
  q: string;
  /** Over time, or by the values of a field. */
  by: 'time' | FacetField;
  size: number;
  buckets: number;
  timeZone?: string | undefined;
}

export interface AskedNames {
  field: 'document' | 'path' | 'entity' | 'actor' | 'related.entity';
  entity?: string | undefined;
  prefix: string;
  changedBefore?: string | undefined;
  size: number;
}

export interface AskedText {
  entity: string;
  entityId: string;
  at?: string | undefined;
  changes?: number | undefined;
}

/** Who asks, and what the caller may see. */
export interface Caller {
  readonly tenant: string;
  readonly restriction?: Restriction | undefined;
}

/** The further reads (contract 4) as JSON texts of at most `maxBytes` each, for modules that ask for a client that may. All throw AnnalsErrors. */
export interface TextAnswers {
  counts(caller: Caller, asked: AskedCounts, maxBytes: number): Promise<TextAnswer>;
  names(caller: Caller, asked: AskedNames, maxBytes: number): Promise<TextAnswer>;
  change(caller: Caller, ref: string, maxBytes: number): Promise<TextAnswer>;
  document(caller: Caller, asked: AskedText, maxBytes: number): Promise<TextAnswer>;
}

export function createTextAnswers({
  reads,
  sealer,
  now,
}: {
  reads: HistoryReads;
  sealer: Sealer;
  now: () => number;
}): TextAnswers {
  async function namesOf({ tenant, restriction }: Caller, asked: AskedNames) {
    const { field, entity, prefix, changedBefore, size } = asked;
    if (field === 'path') return await reads.paths(tenant, { entity, prefix, size, restriction });
    if (field === 'actor') requireActors(restriction);
    if (field !== 'document') return await reads.names(tenant, { field, prefix, size, restriction });
    const before = changedBefore === undefined ? undefined : firstMillisecondFrom('changedBefore', changedBefore);
    const documents = await reads.documents(tenant, { entity, prefix, changedBefore: before, size, restriction });
    return documents.map(documentView);
  }

  return {
    async counts({ tenant, restriction }, { q, by, size, buckets: maxBuckets, timeZone }, maxBytes) {
      const calendar = timeZone === undefined ? undefined : calendarIn(timeZone);
      if (by === 'actor') requireActors(restriction);
      const query = parseOwnQuery(q, restriction);
      if (by === 'time')
        return {
          text: JSON.stringify(
            histogramView(await reads.histogram(tenant, query, { maxBuckets, calendar, restriction })),
          ),
        };
      const { values, ...rest } = facetsView(await reads.facets(tenant, query, { field: by, size, restriction }));
      const fitting = firstThatFit(values, maxBytes - Buffer.byteLength(JSON.stringify(rest)) - 12);
      return {
        text: JSON.stringify({ ...rest, values: fitting }),
        left: leftOf(values.length - fitting.length),
      };
    },

    async names(caller, asked, maxBytes) {
      const values = await namesOf(caller, asked);
      const fitting = firstThatFit<unknown>(values, maxBytes - 64);
      return {
        text: JSON.stringify({ field: asked.field, values: fitting }),
        left: leftOf(values.length - fitting.length),
        shown: values.length,
      };
    },

    async change({ tenant, restriction }, ref, maxBytes) {
      const found = await reads.entry(tenant, openRef(sealer, tenant, ref), { withContext: false, restriction });
      if (found === undefined) throw changeIsGone();
      const { entries, cut } = await fittingEntries(
        await showEntries(sealer, tenant, found, { ref: true, restriction }),
        maxBytes,
        maxBytes,
      );
      const [entry] = entries;
      if (entry === undefined) throw changeIsGone();
      const left = cut === 0 ? undefined : 'What `cut` names is cut or left out.';
      return { text: entryText(entry), left };
    },

    async document({ tenant, restriction }, { entity, entityId, at, changes }, maxBytes) {
      const asked = { entity, entityId, when: documentTime({ at, changes }, now) };
      const { found, release } = await reads.document(tenant, { ...asked, restriction });
      try {
        const { before, after } = aroundDocument(asked, found);
        if (found.document === undefined) return { text: `${before}${after}` };
        const room = maxBytes - Buffer.byteLength(before) - Buffer.byteLength(after);
        const { text, cut, left } = await fitDocument(found.document, room);
        return { text: `${before}${text}${after}`, left: leftOfDocument(cut, left) };
      } finally {
        release();
      }
    },
  };
}

/** Bytes of the names of members whose values are cut. */
const maxNamedBytes = 2_000;

/** Names stand in quotes, as JSON texts: a line that looks like words of ours is none. */
function leftOfDocument(cut: FittingDocument['cut'], left: number): string | undefined {
  const all = cut.map(([member, bytes]) => `${JSON.stringify(member.slice(0, 100))} (${bytes} bytes)`);
  const named = firstThatFit(all, maxNamedBytes);
  const others = all.length - named.length;
  const words = [
    ...(all.length === 0
      ? []
      : [`Cut are the values of ${named.join(', ')}${others === 0 ? '' : ` and ${others} others`}.`]),
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

function leftOf(count: number): string | undefined {
  return count === 0 ? undefined : `The last ${count} values are left out: together they are too long.`;
}
