import type { Condition, Query } from '../query/ast.ts';

/** Milliseconds of the trailing window that holds where a query has no from-bound of its own (spec A, rule 2). */
export const defaultWindowLength = 30 * 86_400_000;

/** Where the default window begins: a time in milliseconds since 1970, itself inside. It has no upper bound. */
export function defaultWindowFrom(nowMs: number): number {
  return nowMs - defaultWindowLength;
}

/**
 * Whether the query has an `occurredAt` from-bound that replaces the default window: every group above it is
 * an AND or has a single operand (spec A, rules 2 to 4; contract 4).
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
