import { rest } from '../core/repeat.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { Database } from '../postgres/database.ts';
import type { FindTenants } from '../postgres/tenants/tenants-with.ts';
import { numberPathsOfTenants } from './paths/number-paths.ts';
import { fillPositionsOfTenants } from './positions/fill-positions.ts';
import { givePositionsOfTenants } from './positions/give-positions.ts';
import { dropExpired } from './retention/retention.ts';
import { foldTenants, unfolded } from './tallies/fold.ts';
import { analyseHistory, buildHistoryIndexes } from './tallies/statistics.ts';

export interface UpkeepOptions {
  db: Database;
  now: () => number;
  findTenants: FindTenants;
  /** For metrics. */
  folds?: FoldObserver | undefined;
}

/** Follows the folds of this process. */
export interface FoldObserver {
  /** A portion of that many entries was folded. */
  onFolded(entries: number): void;
  onFailure(): void;
}

// Milliseconds. A query adds up the entries that are not folded yet, so one second of them costs little.
const foldEvery = 1_000;
// Milliseconds. A fold of one tenant may take long, so positions do not wait for it.
const giveEvery = 500;
const fillEvery = 5_000;
const dropEvery = 60_000;
const analyseEvery = 10_000;
const buildEvery = 600_000;
const rowsAtOnce = 2_000;

/** The background work of the change history. */
export async function changelogUpkeep(app: HttpServer, { db, now, findTenants, folds }: UpkeepOptions): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'folding the change history',
        every: foldEvery,
        work: (signal, onError) =>
          foldTenants(db, {
            signal,
            findTenants,
            onFolded: folds?.onFolded,
            onError: (error) => {
              folds?.onFailure();
              onError(error);
            },
            rest: restAfter(signal),
          }),
      },
      {
        what: 'giving positions to changes',
        every: giveEvery,
        work: (signal, onError) => givePositionsOfTenants(db, { signal, findTenants, work: unfolded, onError }),
      },
      {
        what: 'giving positions to older changes',
        every: fillEvery,
        work: (signal, onError) =>
          fillPositionsOfTenants(db, { signal, findTenants, onError, rest: restAfter(signal) }),
      },
      {
        what: 'dropping expired history',
        every: dropEvery,
        work: (signal, onError) =>
          dropExpired(db, { signal, onError, now, maxRows: rowsAtOnce, rest: restAfter(signal) }),
      },
      {
        what: 'numbering the paths of older changes',
        every: buildEvery,
        work: (signal, onError) => numberPathsOfTenants(db, { signal, findTenants, onError, rest: restAfter(signal) }),
      },
      { what: 'analysing the change history', every: analyseEvery, work: () => analyseHistory(db) },
      { what: 'building an index of the change history', every: buildEvery, work: () => buildHistoryIndexes(db) },
    ],
  });
}

/** The pause is as long as the work took, so recorders and readers have the other half of the disk. */
function restAfter(signal: AbortSignal): (taken: number) => Promise<void> {
  return (taken) => rest(taken, signal);
}
