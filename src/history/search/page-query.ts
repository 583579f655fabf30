import type { Restriction } from '../../http/restriction.ts';
import type { QueryAtMoment } from './snapshots.ts';

/** What a caller asks of a page. What is left out is false. */
export interface AskedPage {
  readonly skip: number;
  readonly size: number;
  /** Whether a page with much text may come as `pieces`, or every page does. If not, a page with more than 64 MiB is a 400. */
  readonly inPieces?: boolean | 'always';
  /** Whether entries come with their circumstances. */
  readonly withContext?: boolean;
  /** Whether entries come with their identities. */
  readonly withIdentity?: boolean;
  /** What the caller may see. */
  readonly restriction?: Restriction | undefined;
}

/** One page of one query. */
export type PageQuery = QueryAtMoment & Required<Omit<AskedPage, 'restriction'>>;
