import type { Condition, Query } from '../../../query/ast.ts';
import type { Expression } from './expression.ts';

/** Milliseconds of the default window, for a query without a from-bound (spec A, rule 2). */
const defaultWindowLength = 30 * 86_400_000;

/** The beginning of the default window, which includes it and has no upper bound. */
export function defaultWindowFrom(nowMs: number): number {
  return nowMs - defaultWindowLength;
}

/** The beginning of the query's window: the default one, or 0 where its own bound replaces that. */
export function windowFrom(query: Query, nowMs: number): number {
  return hasFromBound(query) ? 0 : Math.max(0, defaultWindowFrom(nowMs));
}

/**
 * Whether a query, or a part of it, has an `occurredAt` from-bound that replaces the default window: every group above
 * the bound is an AND or has a single operand (spec A, rules 2 to 4; contract 4).
 */
export function hasFromBound(condition: Condition): boolean {
  switch (condition.kind) {
    case 'time':
      return condition.hasFromBound;
    case 'and':
      return condition.operands.some(hasFromBound);
    case 'or':
      return condition.operands.length === 1 && condition.operands.every(hasFromBound);
    default:
      return false;
  }
}

/** A range of time, in milliseconds since 1970: it includes `from` and excludes `to`. */
export interface TimeBounds {
  readonly from: number;
  /** Infinity: no end. */
  readonly to: number;
}

/** The range that the terms on time leave. Nothing can match outside of it. */
export function timeBounds(query: Condition | Expression): TimeBounds {
  if (query.kind === 'time') {
    return { from: query.from ?? Number.NEGATIVE_INFINITY, to: query.to ?? Number.POSITIVE_INFINITY };
  }
  if ((query.kind !== 'and' && query.kind !== 'or') || query.operands.length === 0) {
    return { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
  }
  const operands = query.operands.map(timeBounds);
  const froms = operands.map(({ from }) => from);
  const tos = operands.map(({ to }) => to);
  return query.kind === 'and'
    ? { from: Math.max(...froms), to: Math.min(...tos) }
    : { from: Math.min(...froms), to: Math.max(...tos) };
}
