import type { ExportHistory } from '../core/export-history.ts';
import { createExportHistory } from '../history/export/export-history.ts';
import { createFeedReads, type FeedReads } from '../history/feed/read-matches.ts';
import { createFindPage, type FindPage } from '../history/find-page.ts';
import { createHistoryReads, type HistoryReads } from '../history/history-reads.ts';
import { DictionaryCache, maxNameBytes } from '../history/names/dictionary-cache.ts';
import { createSavedViews, type SavedViews } from '../history/views/service.ts';
import type { DocumentLists } from '../pagination/document-lists.ts';
import type { Foundation } from './foundation.ts';

/** The reads of the change history, and its saved views. */
export interface HistoryServices {
  findPage: FindPage;
  historyReads: HistoryReads;
  /** What goes out of the history, by position. */
  feedReads: FeedReads;
  exportHistory: ExportHistory;
  savedViews: SavedViews;
}

/** @param processes how many processes share the memory for names */
export function createHistory(
  { pool, db, exports, regexes, sealer, clock }: Foundation,
  { documents }: { documents: DocumentLists },
  processes: number,
): HistoryServices {
  const dictionaries = new DictionaryCache(pool, { maxBytes: Math.floor(maxNameBytes / processes) });
  const now = () => clock.now();
  const history = { pool, db, regexes, now, dictionaries };
  return {
    findPage: createFindPage(history),
    historyReads: createHistoryReads(history),
    feedReads: createFeedReads({ ...history, sealer }),
    exportHistory: createExportHistory({ ...history, db: exports.db }),
    savedViews: createSavedViews({ db, documents, now }),
  };
}
