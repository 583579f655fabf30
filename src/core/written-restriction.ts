/** A restriction as somebody writes it: a query of the change history, paths whose values are masked, and whether actors are shown. */
export interface WrittenRestriction {
  readonly query: string;
  readonly hide: readonly string[];
  /** Whether the actors of changes are shown; default: yes. */
  readonly actors?: boolean | undefined;
}
