import type { Condition, Query } from '../../query/ast.ts';

/** Milliseconds of the default window. It applies if a query has no from-bound of its own (spec A, rule 2). */
const defaultWindowLength = 30 * 86_400_000;

/** The beginning of the default window, in milliseconds since 1970. The window includes it and has no upper bound. */
export function defaultWindowFrom(nowMs: number): number {
  return nowMs - defaultWindowLength;
}

/**
 * Whether the query has an `occurredAt` from-bound that replaces the default window: every group above the bound is an
 * AND or has a single operand (spec A, rules 2 to 4; contract 4).
 */
export function hasFromBound(query: Query): boolean {
  return bounds(query);
}

function bounds(condition: Condition): boolean {
  switch (condition.kind) {
    case 'time':
      return condition.hasFromBound;
    case 'and':
      return condition.operands.some(bounds);
    case 'or':
      return condition.operands.length === 1 && condition.operands.every(bounds);
    default:
      return false;
  }
}
