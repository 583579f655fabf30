/**
 * What a reader sees of who made changes: nothing, the names of actors, or `all`: also their ids, for whom they acted,
 * and what belongs together.
 */
export type ShownActors = boolean | 'all';

/** A restriction as its author wrote it: a query of the change history, and paths whose values are masked. */
export interface WrittenRestriction {
  readonly query: string;
  readonly hide: readonly string[];
  /** What is shown of who made changes (`ShownActors`); default: names. */
  readonly actors?: ShownActors | undefined;
}
