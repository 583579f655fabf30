import { currentWork, doWork, requestLimit } from '../core/fairness/work.ts';
import type { Sealer } from '../core/sealing.ts';
import type { StopSignal } from '../core/stop-signal.ts';
import type { Restriction } from '../http/credentials.ts';
import { cutValues, firstPaths, valueLimits, wordsOfCut } from './entries/cut-values.ts';
import type { EntryRow, PageOfEntries } from './entries/entry-store.ts';
import { entryText, historyText } from './entries/entry-text.ts';
import { showEntries } from './entries/show-entries.ts';
import type { FindPage } from './search/find-page.ts';
import { parseOwnQuery } from './search/plan/restriction.ts';

/** Answers a query of the change history as the HTTP operation does. Throws AnnalsError for a wrong query. */
export type AnswerQuery = (tenant: string, asked: AskedQuery) => Promise<AnsweredQuery>;

interface AnsweredQuery {
  /** JSON text of the page's first entries: as many as fit into `maxBytes` together. */
  readonly text: string;
  readonly shown: number;
  /** The number of entries of the page that the text leaves out. */
  readonly left: number;
  /** The number of entries that the text shows in part, because each is longer than `maxBytes`. */
  readonly cut: number;
  readonly total: number;
}

interface AskedQuery {
  q: string;
  page: number;
  size: number;
  maxBytes: number;
  /** Whether entries come with their refs. */
  withRef?: boolean | undefined;
  /** What the caller may see. */
  restriction?: Restriction | undefined;
  /** Aborted when nobody waits for the answer any more. Annals then cancels the query in the database too. Default: that of the current work. */
  signal?: StopSignal | undefined;
}

/** For modules that query the change history for a client that is allowed to. context.ts hands it to them. */
export function createAnswerQuery(findPage: FindPage, sealer: Sealer): AnswerQuery {
  return async (tenant, { q, page, size, maxBytes, withRef = false, restriction, signal = currentWork()?.signal }) => {
    const query = parseOwnQuery(q, restriction);
    return await doWork({ tenant, signal, timeLimit: requestLimit }, async () => {
      const skip = (page - 1) * size;
      const read = await findPage(tenant, query, { skip, size, inPieces: true, withIdentity: withRef, restriction });
      const found = await showEntries(sealer, tenant, read, { ref: withRef, restriction });
      const { entries, cut } = await fittingEntries(found, maxBytes);
      const onPage = Math.max(0, Math.min(size, found.total - skip));
      const shown = entries.length;
      return {
        text: historyText({ ...found, entries }, { page, size }),
        shown,
        left: onPage - shown,
        cut,
        total: found.total,
      };
    });
  };
}

/**
 * The first entries that fit into so many bytes together. An entry that does not fit alone is cut to `maxBytesOfLong`.
 * Annals does not read the later pieces of a long page.
 */
export async function fittingEntries(
  { entries, pieces }: PageOfEntries,
  maxBytes: number,
  maxBytesOfLong = maxBytes / 4,
) {
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

/** Bytes of the words about what is left out. */
const maxBytesOfLeft = 100;

/** Cuts the values of an entry until it has at most `maxBytes`, and leaves out paths where that is not enough. `cut` tells both. */
async function cutEntry(entry: EntryRow, maxBytes: number): Promise<EntryRow> {
  for (const limit of valueLimits) {
    const [found] = await cutValues([entry.paths], limit);
    if (found === undefined) continue;
    const shown = { ...entry, paths: found.paths, cut: wordsOfCut(found) };
    if (bytesOf(shown) <= maxBytes) return shown;
  }
  const hasManyRelated = Buffer.byteLength(entry.related ?? '') > maxBytes / 4;
  const related = hasManyRelated ? null : entry.related;
  const { paths, cut, left } = await firstPaths(
    entry.paths,
    maxBytes - bytesOf({ ...entry, related, paths: '{}', cut: [] }) - maxBytesOfLeft,
  );
  const leftOut = [
    ...(left > 0 ? [`${left} further paths`] : []),
    ...(hasManyRelated ? [`related (${Buffer.byteLength(entry.related ?? '')} bytes)`] : []),
  ];
  return { ...entry, related, paths, cut: [...cut, ...leftOut] };
}

function bytesOf(entry: EntryRow): number {
  return Buffer.byteLength(entryText(entry));
}

async function* piecesOf(entries: readonly EntryRow[], pieces: PageOfEntries['pieces']) {
  yield entries;
  if (pieces !== undefined) yield* pieces;
}
