/**
 * What a reader sees of who made changes: nothing, the names of actors, or `all`: also their ids, for whom they acted,
 * and what belongs together.
 */
export type ShownActors = boolean | 'all';

/** As it may be written: `names` is another word for `true`. */
export type WrittenActors = ShownActors | 'names';

/** What a written value means. */
export function shownActorsOf(written: WrittenActors): ShownActors {
  return written === 'names' ? true : written;
}

/** A restriction as its author wrote it: a query of the change history, and paths whose values are masked. */
export interface WrittenRestriction {
  readonly query: string;
  readonly hide: readonly string[];
  /** What is shown of who made changes (`ShownActors`); default: names. */
  readonly actors?: ShownActors | undefined;
}
