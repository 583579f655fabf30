import { doWork, requestLimit } from '../concurrency/work.ts';
import { parseQuery } from '../query/parse.ts';
import type { StopSignal } from '../stop-signal.ts';
import { changelogDialect } from './dialect.ts';
import type { FindPage } from './find-page.ts';
import type { EntryRow, PageOfEntries } from './read/store.ts';
import { entryText, historyText } from './read/view.ts';

/** A query of the change history as its operation answers it; throws AnnalsError for a wrong query. */
export type AnswerQuery = (tenant: string, asked: AskedQuery) => Promise<AnsweredQuery>;

interface AnsweredQuery {
  /** JSON text, with as many of the page's first entries as have at most `maxBytes` together. */
  readonly text: string;
  readonly shown: number;
  /** Entries of the page that are not shown. */
  readonly left: number;
  readonly total: number;
}

interface AskedQuery {
  q: string;
  page: number;
  size: number;
  maxBytes: number;
  /** Given when nobody waits for the answer any more: the query ends in the database too. */
  signal?: StopSignal | undefined;
}

/** For rooms that ask the change history in the name of a client that may; context.ts hands it to them. */
export function createAnswerQuery(findPage: FindPage): AnswerQuery {
  return async (tenant, { q, page, size, maxBytes, signal }) => {
    const query = parseQuery(q, changelogDialect);
    return await doWork({ tenant, signal, timeLimit: requestLimit }, async () => {
      const skip = (page - 1) * size;
      const found = await findPage(tenant, query, { skip, size, inPieces: true });
      const entries = await fittingEntries(found, maxBytes);
      const onPage = Math.max(0, Math.min(size, found.total - skip));
      const shown = entries.length;
      return {
        text: historyText({ ...found, entries }, { page, size }),
        shown,
        left: onPage - shown,
        total: found.total,
      };
    });
  };
}

/** The first entries that have so many bytes together. Further pieces of a long page are not even read. */
async function fittingEntries({ entries, pieces }: PageOfEntries, maxBytes: number): Promise<EntryRow[]> {
  const fitting: EntryRow[] = [];
  let room = maxBytes;
  for await (const piece of piecesOf(entries, pieces)) {
    for (const entry of piece) {
      room -= Buffer.byteLength(entryText(entry));
      if (room < 0) return fitting;
      fitting.push(entry);
    }
  }
  return fitting;
}

async function* piecesOf(entries: readonly EntryRow[], pieces: PageOfEntries['pieces']) {
  yield entries;
  if (pieces !== undefined) yield* pieces;
}
