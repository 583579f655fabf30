import type { PathPattern } from '../core/path-pattern.ts';
import type { WrittenRestriction } from '../core/written-restriction.ts';
import type { Query } from '../query/ast.ts';

/**
 * What a credential may see of its tenant's change history. Whoever uses it gets, from each read, what a tenant would answer
 * into which only the entries of `query` had been imported, masked (docs/access.md).
 */
export interface Restriction {
  /** As it was written, the outer one first. A credential that is made with a restricted one has a restriction more. */
  readonly written: readonly WrittenRestriction[];
  /** It has no regular expression, and is joined to the caller's query as a tree. */
  readonly query: Query;
  readonly hide: readonly PathPattern[];
  /** Whether entries show their actors. */
  readonly actors: boolean;
}

/** Throws validation_violation for a query or a path that may not be in a restriction. */
export type ReadRestriction = (written: readonly WrittenRestriction[]) => Restriction;
