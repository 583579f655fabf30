import type { Config } from '../core/config/config.ts';
import type { ExportHistory } from '../core/export-history.ts';
import { createExportHistory } from '../history/export/export-history.ts';
import { createReadBundle } from '../history/feed/bundle-lines.ts';
import { createFeed, type Feed } from '../history/feed/feed.ts';
import { type Follow, HistoryFollower } from '../history/feed/follower.ts';
import { createFeedReads } from '../history/feed/read-matches.ts';
import { createHistoryReads, type HistoryReads } from '../history/history-reads.ts';
import { createHistoryTexts, type HistoryTexts } from '../history/history-texts.ts';
import { createFindPage, type FindPage } from '../history/search/find-page.ts';
import { DictionaryCache, maxNameBytes } from '../history/search/names/dictionary-cache.ts';
import { createSavedViews, type SavedViews } from '../history/views/service.ts';
import type { DocumentLists } from '../pagination/paginator.ts';
import { isDistributed } from '../postgres/is-distributed.ts';
import { withProofs } from '../proof/bundle/export-bundle.ts';
import type { ReadBundle } from '../proof/bundle/lines.ts';
import { hostOfLogs, openSigner } from '../proof/log/signer.ts';
import { openCosigner, type WitnessedSealing } from '../proof/witness/cosign-logs.ts';
import type { Foundation } from './foundation.ts';

/** The reads of the change history, and its saved views. */
export interface HistoryServices {
  findPage: FindPage;
  historyReads: HistoryReads;
  /** The reads as texts of limited length, for language models. */
  historyTexts: HistoryTexts;
  /** Reads the history by position. */
  feed: Feed;
  exportHistory: ExportHistory;
  savedViews: SavedViews;
  /** Undefined if this process seals no histories. */
  /** The history with its proof. */
  readBundle: ReadBundle;
  sealing: WitnessedSealing | undefined;
}

/** Adds to `closing` what closes them. `processes` share the memory for names. */
export function createHistory(
  { config, pool, db, vital, exports, regexes, sealer, clock, logger }: Foundation,
  { documents, installation }: { documents: DocumentLists; installation: string },
  processes: number,
  closing: AsyncDisposableStack,
): HistoryServices {
  const dictionaries = new DictionaryCache(pool, { maxBytes: Math.floor(maxNameBytes / processes) });
  const now = () => clock.now();
  const history = { pool, db, regexes, now, dictionaries };
  const onError = (error: unknown) => logger.warn({ err: error }, 'following the change history failed; retrying');
  const follower = new HistoryFollower({ db, isDistributed: () => isDistributed(vital.pool), onError });
  closing.defer(() => follower.close());
  const follow: Follow = (...followed) => follower.follow(...followed);
  const findPage = createFindPage(history);
  const historyReads = createHistoryReads(history);
  const readBundle = createReadBundle(history);
  return {
    findPage,
    historyReads,
    historyTexts: createHistoryTexts({ findPage, reads: historyReads, sealer, now }),
    feed: createFeed(createFeedReads({ ...history, sealer }), { follow, onError }),
    exportHistory: withProofs(createExportHistory({ ...history, db: exports.db, sealer }), readBundle),
    savedViews: createSavedViews({ db, documents, now }),
    readBundle,
    sealing: createSealing(config, installation, now, closing),
  };
}

function createSealing(
  { proofKeyFile, proofPolicyFile, baseUrl }: Config,
  installation: string,
  now: () => number,
  closing: AsyncDisposableStack,
): WitnessedSealing | undefined {
  if (proofKeyFile === undefined) return undefined;
  const signer = openSigner(proofKeyFile, hostOfLogs(baseUrl, installation));
  closing.defer(() => signer.newest.close());
  return { signer, now, cosigner: proofPolicyFile === undefined ? undefined : openCosigner(proofPolicyFile) };
}
