import { doWork, requestLimit } from '../concurrency/work.ts';
import { parseQuery } from '../query/parse.ts';
import type { StopSignal } from '../stop-signal.ts';
import { changelogDialect } from './dialect.ts';
import type { FindPage } from './find-page.ts';
import type { EntryRow, PageOfEntries } from './read/store.ts';
import { entryText, historyText } from './read/view.ts';

/** Answers a query of the change history as the HTTP operation does. Throws AnnalsError for a wrong query. */
export type AnswerQuery = (tenant: string, asked: AskedQuery) => Promise<AnsweredQuery>;

interface AnsweredQuery {
  /** JSON text of the page's first entries: as many as fit into `maxBytes` together. */
  readonly text: string;
  readonly shown: number;
  /** The number of entries of the page that the text leaves out. */
  readonly left: number;
  readonly total: number;
}

interface AskedQuery {
  q: string;
  page: number;
  size: number;
  maxBytes: number;
  /** Aborted when nobody waits for the answer any more. Annals then cancels the query in the database too. */
  signal?: StopSignal | undefined;
}

/** For modules that query the change history for a client that is allowed to. context.ts hands it to them. */
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

/** The first entries that fit into so many bytes together. Annals does not read the later pieces of a long page. */
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
