import type { Figures } from '../../metrics/metrics.ts';
import type { ErrorReport } from '../error-report.ts';

/** From the primary process to a worker. */
export type PrimaryMessage =
  | ({ readonly type: 'begin' } & WorkerTask)
  /** This worker does the upkeep from now on. */
  | { readonly type: 'lead' }
  /** Requests the figures. */
  | { readonly type: 'measure'; readonly id: number }
  | { readonly type: 'stop'; readonly signal: NodeJS.Signals };

/** A worker's task. It has secrets, so it goes over the channel between the processes, not in the environment. */
export interface WorkerTask {
  readonly number: number;
  readonly of: number;
  readonly databaseUrl: string;
  /** In base64. */
  readonly secretKeys: readonly string[];
  /** The ports of earlier workers; default: as set. */
  readonly ports?: Ports | undefined;
}

export interface Ports {
  readonly main: number;
  readonly recorder: number | undefined;
}

/** From a worker to the primary process. */
export type WorkerMessage =
  /** The worker has started and waits for `begin`. */
  | { readonly type: 'started' }
  | { readonly type: 'ready'; readonly addresses: Addresses }
  | { readonly type: 'measured'; readonly id: number; readonly figures: Figures }
  | { readonly type: 'failed'; readonly report: ErrorReport };

/** Base URLs. */
export interface Addresses {
  readonly main: string;
  readonly recorder: string | undefined;
}

/** The environment variable with a worker's number. */
export const workerVariable = 'ANNALS_WORKER_NUMBER';
