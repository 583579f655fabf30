import type { FastifyBaseLogger } from 'fastify';
import { rest } from '../../core/repeat.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { type Upkeep, whileListening } from '../../http/while-listening.ts';
import type { Database } from '../../postgres/database.ts';
import { type FindTenants, sharedLook } from '../../postgres/tenants/tenants-with.ts';
import { type Sealing, sealTenants, unsealed } from '../../proof/log/seal-tenants.ts';
import type { SetBackLog } from '../../proof/log/sign-log.ts';
import {
  type Cosigner,
  type CosigningOutcome,
  uncosigned,
  type WitnessedSealing,
} from '../../proof/witness/cosign-logs.ts';
import { givePositionsOfTenants } from '../../recording/positions.ts';
import { dropExpired } from '../retention/retention.ts';
import { foldTenants, unfolded } from './fold.ts';
import { analyseHistory, buildHistoryIndexes } from './statistics.ts';

export interface UpkeepOptions {
  db: Database;
  now: () => number;
  findTenants: FindTenants;
  folds?: FoldObserver | undefined;
  /** For metrics: the answer of a witness to a checkpoint. */
  onCosigning?: ((outcome: CosigningOutcome) => void) | undefined;
  /** Left out: this process seals no history. */
  sealing?: WitnessedSealing | undefined;
}

/** For metrics. */
export interface FoldObserver {
  /** A portion of that many entries was folded. */
  onFolded(entries: number): void;
  onFailure(): void;
}

// Milliseconds. A query adds up the entries that are not folded yet, so one second of them costs little.
const foldEvery = 1_000;
// Milliseconds. A fold of one tenant may take long, so positions do not wait for it.
const giveEvery = 500;
const dropEvery = 60_000;
const analyseEvery = 10_000;
const buildEvery = 600_000;
const sealEvery = 5_000;
const rowsAtOnce = 2_000;

export async function changelogUpkeep(app: HttpServer, options: UpkeepOptions): Promise<void> {
  const { db, now, findTenants, folds, onCosigning, sealing } = options;
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
        what: 'dropping expired history',
        every: dropEvery,
        work: (signal, onError) =>
          dropExpired(db, { signal, onError, now, maxRows: rowsAtOnce, rest: restAfter(signal) }),
      },
      { what: 'analysing the change history', every: analyseEvery, work: () => analyseHistory(db) },
      { what: 'building an index of the change history', every: buildEvery, work: () => buildHistoryIndexes(db) },
      ...(sealing === undefined ? [] : [sealingOf(db, sealing, app.log)]),
      ...(sealing?.cosigner === undefined ? [] : [cosigningOf(db, sealing.cosigner, app.log, onCosigning)]),
    ],
  });
}

function sealingOf(db: Database, { signer, now }: Sealing, log: FastifyBaseLogger): Upkeep {
  // Its own look for tenants: processes without a key have none.
  const findTenants = sharedLook(db, [unsealed]);
  let all = true;
  const onSetBack = (tenant: string, { origin, signed, left }: SetBackLog) =>
    log.warn(
      { tenant, origin, signed, left },
      'the database, or what is beside the proof key, was set back behind what the key signed; a new log begins',
    );
  return {
    what: 'sealing the change history',
    every: sealEvery,
    async work(signal, onError) {
      const isFirst = all;
      all = false;
      // Most of the time goes into hashing here, not to the disk.
      await sealTenants(
        db,
        { signer, now, onSetBack },
        {
          signal,
          findTenants,
          onError,
          rest: (taken) => rest(taken / 4, signal),
          all: isFirst,
        },
      );
    },
  };
}

function cosigningOf(
  db: Database,
  cosigner: Cosigner,
  log: FastifyBaseLogger,
  onCosigning: UpkeepOptions['onCosigning'],
): Upkeep {
  const findTenants = sharedLook(db, [uncosigned]);
  return {
    what: 'asking witnesses to sign the log',
    every: sealEvery,
    work: (signal) =>
      cosigner.cosignAll(db, {
        signal,
        findTenants,
        onAnswer(witness, outcome, fault) {
          onCosigning?.(outcome);
          if (outcome === 'refused')
            log.error({ witness, fault }, 'a witness refused to sign a checkpoint; it is asked again');
          if (outcome === 'failed')
            log.warn({ witness, fault }, 'a witness did not sign a checkpoint; it is asked again');
        },
      }),
  };
}

/** Rests as long as the work took, which leaves half of the disk to recorders and readers. */
function restAfter(signal: AbortSignal): (taken: number) => Promise<void> {
  return (taken) => rest(taken, signal);
}
