import type { Matcher } from '../../query/ast.ts';

/**
 * A query whose names are looked up: what is left of a term on entity, type, related entity or actor is which kinds
 * and which actors satisfy it, as one byte for each of the dictionary's.
 */
export type Expression = Group | Term;

export type Term = Members<'kinds'> | Members<'actors'> | TimeTerm | DocumentTerm | RelatedTerm;

export interface Group {
  readonly kind: 'and' | 'or';
  readonly operands: readonly Expression[];
}

export interface Members<Of extends 'kinds' | 'actors'> {
  readonly kind: Of;
  readonly members: Uint8Array;
}

/** In milliseconds since 1970: `from` inside, `to` the first one after it. */
export interface TimeTerm {
  readonly kind: 'time';
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** A term that tallies cannot answer: on the document's own id. */
export interface DocumentTerm {
  readonly kind: 'document';
  readonly matcher: ResolvedMatcher;
}

/** One related item satisfies all of these. There is at least one on its id. */
export interface RelatedTerm {
  readonly kind: 'related';
  readonly entities: readonly ResolvedMatcher[];
  readonly ids: readonly ResolvedMatcher[];
  /** The term on kinds that stands beside it and holds wherever this one does. */
  readonly implies?: Members<'kinds'>;
}

/** A regular expression is replaced by what it was found in. */
export type ResolvedMatcher =
  | Exclude<Matcher, { kind: 'regex' }>
  | { readonly kind: 'found'; readonly texts: readonly string[] }
  | FoundIds;

/**
 * The ids in which a regular expression was found, as hashes in the text of an array: these, or all but these of those that
 * the entries have that can satisfy the query.
 */
export interface FoundIds {
  readonly kind: 'ids';
  readonly isIn: boolean;
  readonly count: number;
  readonly hashes: string;
}

export const always: Group = { kind: 'and', operands: [] };
export const never: Group = { kind: 'or', operands: [] };

export function isGroup(expression: Expression): expression is Group {
  return expression.kind === 'and' || expression.kind === 'or';
}

export function isAlways(expression: Expression): boolean {
  return expression.kind === 'and' && expression.operands.length === 0;
}

export function isNever(expression: Expression): boolean {
  return expression.kind === 'or' && expression.operands.length === 0;
}

/**
 * The expression with some terms decided: `decide` answers true or false for a term it can tell, and undefined for
 * one that stays. What that settles is folded away, so the result is `always`, `never` or has open terms only.
 */
export function decide(expression: Expression, decideTerm: (term: Term) => boolean | undefined): Expression {
  if (!isGroup(expression)) {
    const decided = decideTerm(expression);
    return decided === undefined ? expression : decided ? always : never;
  }
  const absorbing = expression.kind === 'and' ? isNever : isAlways;
  const neutral = expression.kind === 'and' ? isAlways : isNever;
  const operands: Expression[] = [];
  for (const operand of expression.operands) {
    const decided = decide(operand, decideTerm);
    if (absorbing(decided)) return decided;
    if (!neutral(decided)) operands.push(decided);
  }
  const [only] = operands;
  if (operands.length === 1 && only !== undefined) return only;
  return { kind: expression.kind, operands };
}

/** Every term of an expression. */
export function termsOf(expression: Expression): Term[] {
  if (!isGroup(expression)) return [expression];
  return expression.operands.flatMap(termsOf);
}

/** The numbers of those names that are members, found without a look at the others: there may be many. */
export function idsOf(names: readonly { id: number }[], members: Uint8Array): number[] {
  const ids: number[] = [];
  for (let index = members.indexOf(1); index !== -1; index = members.indexOf(1, index + 1)) {
    const name = names[index];
    if (name !== undefined) ids.push(name.id);
  }
  return ids;
}

/** Whether it is a term that tallies cannot answer. */
export function isOnDocuments(expression: Expression): expression is DocumentTerm | RelatedTerm {
  return expression.kind === 'document' || expression.kind === 'related';
}
