import { type Expression, isGroup } from './expression.ts';

/** A range of time, in milliseconds since 1970: it includes `from` and excludes `to`. */
export interface TimeBounds {
  readonly from: number;
  /** Infinity: no end. */
  readonly to: number;
}

/** The range that the terms on time leave to the entries of a query. Nothing can match outside of it. */
export function timeBounds(expression: Expression): TimeBounds {
  if (expression.kind === 'time') {
    return { from: expression.from ?? Number.NEGATIVE_INFINITY, to: expression.to ?? Number.POSITIVE_INFINITY };
  }
  if (!isGroup(expression) || expression.operands.length === 0) {
    return { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };
  }
  const operands = expression.operands.map(timeBounds);
  const froms = operands.map(({ from }) => from);
  const tos = operands.map(({ to }) => to);
  return expression.kind === 'and'
    ? { from: Math.max(...froms), to: Math.min(...tos) }
    : { from: Math.min(...froms), to: Math.max(...tos) };
}
