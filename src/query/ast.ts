import type { PathPattern } from '../core/path-pattern.ts';

/**
 * A parsed query as small frozen nodes. The tree mirrors the text: every pair of parentheses is a node of its own and
 * nothing is simplified, so a position always leads back to the text. Positions are 1-based code points.
 */
export type Condition = And | Or | Match | TimeRange | ItemMatch;

/** A query is the AND of its terms; without terms it filters nothing. */
export type Query = And;

/** A query over the fields of JSON documents (contract 9): values have types, and there are no times. */
export type DocumentCondition = And<DocumentCondition> | Or<DocumentCondition> | Match | Comparison;
export type DocumentQuery = And<DocumentCondition>;

/** Any query of any dialect. */
export type AnyCondition = And<AnyCondition> | Or<AnyCondition> | Match | TimeRange | ItemMatch | Comparison;

export interface And<Operand = Condition> {
  readonly kind: 'and';
  readonly operands: readonly Operand[];
  readonly position: number;
}

export interface Or<Operand = Condition> {
  readonly kind: 'or';
  readonly operands: readonly Operand[];
  readonly position: number;
}

export interface Match {
  readonly kind: 'match';
  readonly field: string;
  readonly matcher: Matcher;
  /** Whether a text also matches what begins with it and a dot. Globs and expressions match the whole value alone. */
  readonly beneath?: true;
  readonly position: number;
}

/**
 * `from` is the first whole millisecond since 1970 inside the range, `to` the first one after it. Either may be
 * missing. Entries have whole milliseconds, so both are exact for any precision in the query.
 */
export interface TimeRange {
  readonly kind: 'time';
  readonly field: string;
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly hasFromBound: boolean;
  readonly position: number;
}

/** The value of `field` has the type of each bound, a number or a string, and lies inside the bounds. */
export interface Comparison {
  readonly kind: 'comparison';
  readonly field: string;
  readonly bounds: readonly Bound[];
  readonly position: number;
}

export interface Bound {
  readonly operator: '>' | '>=' | '<' | '<=';
  readonly type: 'number' | 'string';
  /** The text of a number, since it may have more digits than a double. */
  readonly text: string;
}

/** One item of `field` satisfies everything in `operand`: a related item, or a changed path with its values. */
export interface ItemMatch {
  readonly kind: 'item';
  readonly field: string;
  readonly operand: ItemQuery;
  readonly position: number;
  /** Values at these paths count as masked. */
  readonly hide?: readonly PathPattern[];
}

export interface ItemQuery {
  readonly kind: 'and';
  readonly operands: readonly ItemTerm[];
  readonly position: number;
}

export type ItemTerm = Match | Comparison;

export type Matcher = Text | Glob | Regex | List;

/** `quoted` matters in documents: there a bare `1` or `true` is a number or a boolean, and `"1"` is a string. */
export interface Text {
  readonly kind: 'text';
  readonly text: string;
  readonly quoted: boolean;
}

/** The literal parts between the stars: one part more than stars, and never two stars in a row. */
export interface Glob {
  readonly kind: 'glob';
  readonly parts: readonly string[];
}

export interface Regex {
  readonly kind: 'regex';
  readonly source: string;
}

export interface List {
  readonly kind: 'list';
  readonly items: readonly (Text | Glob)[];
}

export function and<Operand = Condition>(operands: readonly Operand[], position: number): And<Operand> {
  return Object.freeze({ kind: 'and', operands: Object.freeze(operands), position });
}

export function or<Operand = Condition>(operands: readonly Operand[], position: number): Or<Operand> {
  return Object.freeze({ kind: 'or', operands: Object.freeze(operands), position });
}

export function match(
  field: string,
  matcher: Matcher,
  position: number,
  { beneath }: Pick<Match, 'beneath'> = {},
): Match {
  return Object.freeze({ kind: 'match', field, matcher, position, ...(beneath && { beneath }) });
}

export function timeRange(
  field: string,
  bounds: { from: number | undefined; to: number | undefined },
  position: number,
): TimeRange {
  const { from, to } = bounds;
  return Object.freeze({ kind: 'time', field, from, to, hasFromBound: from !== undefined, position });
}

export function comparison(field: string, bounds: readonly Bound[], position: number): Comparison {
  return Object.freeze({ kind: 'comparison', field, bounds: Object.freeze(bounds), position });
}

export function itemMatch(
  field: string,
  operand: ItemQuery,
  position: number,
  hide: readonly PathPattern[] = [],
): ItemMatch {
  return Object.freeze({ kind: 'item', field, operand, position, ...(hide.length > 0 && { hide }) });
}

export function itemQuery(operands: readonly ItemTerm[], position: number): ItemQuery {
  return Object.freeze({ kind: 'and', operands: Object.freeze(operands), position });
}

export function text(value: string, quoted: boolean): Text {
  return Object.freeze({ kind: 'text', text: value, quoted });
}

/** Drops empty parts in the middle: several stars in a row mean the same as one. */
export function glob(parts: readonly string[]): Glob {
  const kept = parts.filter((part, index) => part !== '' || index === 0 || index === parts.length - 1);
  return Object.freeze({ kind: 'glob', parts: Object.freeze(kept) });
}

export function regex(source: string): Regex {
  return Object.freeze({ kind: 'regex', source });
}

export function list(items: readonly (Text | Glob)[]): List {
  return Object.freeze({ kind: 'list', items: Object.freeze(items) });
}

/** Both queries must hold. In the second one, values at the paths `hide` count as masked. */
export function andMasked(first: Query, second: Query, hide: readonly PathPattern[]): Query {
  return and([...first.operands, ...second.operands.map((operand) => masked(operand, hide))], second.position);
}

function masked(condition: Condition, hide: readonly PathPattern[]): Condition {
  switch (condition.kind) {
    case 'and':
    case 'or': {
      const operands = condition.operands.map((operand) => masked(operand, hide));
      return Object.freeze({ ...condition, operands: Object.freeze(operands) });
    }
    case 'item':
      return itemMatch(condition.field, condition.operand, condition.position, [...(condition.hide ?? []), ...hide]);
    default:
      return condition;
  }
}
