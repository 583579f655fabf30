import type { QueryAtMoment } from './query-snapshot.ts';

/** One page of one query. */
export interface PageQuery extends QueryAtMoment {
  readonly skip: number;
  readonly size: number;
  /** Whether a page with much text may come as `pieces`. */
  readonly inPieces: boolean;
  /** Whether entries come with their circumstances. */
  readonly withContext: boolean;
  /** Whether entries come with their identities. */
  readonly withIdentity: boolean;
}
