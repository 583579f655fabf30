import type { Figures } from '../../metrics/metrics.ts';
import type { ErrorReport } from '../error-report.ts';

/** What the primary process tells a worker. */
export type PrimaryMessage =
  | ({ readonly type: 'begin' } & WorkerTask)
  /** The upkeep is this worker's from now on. */
  | { readonly type: 'lead' }
  /** The figures are wanted. */
  | { readonly type: 'measure'; readonly id: number }
  | { readonly type: 'stop'; readonly signal: NodeJS.Signals };

/** What a worker needs besides the environment. It has secrets, so it goes through the channel between the processes. */
export interface WorkerTask {
  readonly number: number;
  readonly of: number;
  readonly databaseUrl: string;
  /** In base64. */
  readonly secretKeys: readonly string[];
  /** Where the workers before it listened; left out: where the settings say. */
  readonly ports?: Ports | undefined;
}

export interface Ports {
  readonly main: number;
  readonly recorder: number | undefined;
}

/** What a worker tells the primary process. */
export type WorkerMessage =
  /** It has started, and waits for `begin`. */
  | { readonly type: 'asks' }
  | { readonly type: 'ready'; readonly addresses: Addresses }
  | { readonly type: 'measured'; readonly id: number; readonly figures: Figures }
  | { readonly type: 'failed'; readonly report: ErrorReport };

/** Base URLs. */
export interface Addresses {
  readonly main: string;
  readonly recorder: string | undefined;
}

/** The variable of a worker's environment with its number. */
export const workerVariable = 'ANNALS_WORKER_NUMBER';
