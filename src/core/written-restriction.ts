/** A restriction as its author wrote it: a query of the change history, and paths whose values are masked. */
export interface WrittenRestriction {
  readonly query: string;
  readonly hide: readonly string[];
  /** Whether the actors of changes are shown; default: yes. */
  readonly actors?: boolean | undefined;
}
