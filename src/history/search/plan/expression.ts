import type { PathPattern } from '../../../core/path-pattern.ts';
import type { DocumentQuery, Match, Matcher } from '../../../query/ast.ts';

/**
 * A query whose names are resolved. A term on entity, type, related entity or actor becomes the set of kinds or actors
 * that satisfy it: one byte for each kind or actor of the dictionary.
 */
export type Expression = Group | ExpressionTerm;

export type ExpressionTerm = NameTerm<'kinds'> | NameTerm<'actors'> | TimeTerm | OpenTerm;

/** A term that tallies cannot answer. */
export type OpenTerm = DocumentTerm | RelatedTerm | PathTerm | ChangeTerm | MemberTerm;

interface Group {
  readonly kind: 'and' | 'or';
  readonly operands: readonly Expression[];
}

export interface NameTerm<Of extends 'kinds' | 'actors'> {
  readonly kind: Of;
  readonly members: Uint8Array;
}

/** In milliseconds since 1970: the range includes `from` and excludes `to`. */
interface TimeTerm {
  readonly kind: 'time';
  readonly from: number | undefined;
  readonly to: number | undefined;
}

export interface DocumentTerm {
  readonly kind: 'document';
  readonly matcher: ResolvedMatcher;
}

/** One related item satisfies all of these terms. At least one of them is on its id. */
export interface RelatedTerm {
  readonly kind: 'related';
  readonly entities: readonly ResolvedMatcher[];
  readonly ids: readonly ResolvedMatcher[];
  /** A term on kinds in the same AND. It holds wherever this term holds. */
  readonly implies?: NameTerm<'kinds'>;
}

/** The correlation id of the entry, or a member of its context, satisfies one of these conditions. */
export interface MemberTerm {
  readonly kind: 'member';
  /** The name of the member; undefined: the correlation id. */
  readonly context: string | undefined;
  readonly exists: boolean;
  readonly missing: boolean;
  readonly texts: ResolvedMatcher | undefined;
}

/** The entry has a path that the matcher accepts. */
export interface PathTerm {
  readonly kind: 'path';
  readonly candidates: PathCandidates;
  readonly path: PathMatcher;
}

/** One path of the entry satisfies all of these conditions. */
export interface ChangeTerm {
  readonly kind: 'change';
  /** Undefined: no condition is on the path. */
  readonly candidates: PathCandidates | undefined;
  readonly paths: readonly PathMatcher[];
  /** Conditions on the fields `before` and `after` of the path. */
  readonly sides: DocumentQuery;
  readonly is: readonly Match[];
  /** Values at these paths count as masked. */
  readonly hide: readonly PathPattern[];
}

export interface PathMatcher {
  readonly matcher: ResolvedMatcher;
  /** Whether a text also accepts the paths that begin with it and a dot. */
  readonly beneath: boolean;
}

/** The entries that come into question, by the numbers of their paths. Numbers are texts of arrays. */
export interface PathCandidates {
  /** An entry with one of these numbers has an accepted path. */
  readonly certain: readonly string[];
  /** An entry with one of these numbers may have such a path. */
  readonly possible: readonly string[];
}

/** The ids or names that a regular expression matches replace it. */
export type ResolvedMatcher =
  | Exclude<Matcher, { kind: 'regex' }>
  | { readonly kind: 'found'; readonly texts: readonly string[] }
  | IdSet;

/**
 * The ids that a regular expression matches (or, with `isIn` false, does not match) among those of the entries that can
 * satisfy the query, as hashes in the text of an array.
 */
export interface IdSet {
  readonly kind: 'ids';
  readonly isIn: boolean;
  readonly count: number;
  readonly hashes: string;
}

const always: Group = { kind: 'and', operands: [] };
const never: Group = { kind: 'or', operands: [] };

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
 * Simplifies the expression. `decide` returns true or false for a term that it can decide, and undefined for an open
 * term. The result is `always`, `never` or an expression with open terms only.
 */
export function decide(expression: Expression, decideTerm: (term: ExpressionTerm) => boolean | undefined): Expression {
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

export function termsOf(expression: Expression): ExpressionTerm[] {
  if (!isGroup(expression)) return [expression];
  return expression.operands.flatMap(termsOf);
}

/** The ids of the names that are members. Skips the rest, which may be many, without a look at each. */
export function idsOf(names: readonly { id: number }[], members: Uint8Array): number[] {
  const ids: number[] = [];
  for (let index = members.indexOf(1); index !== -1; index = members.indexOf(1, index + 1)) {
    const name = names[index];
    if (name !== undefined) ids.push(name.id);
  }
  return ids;
}

export function isOpen(expression: Expression): expression is OpenTerm {
  const { kind } = expression;
  return kind === 'document' || kind === 'related' || kind === 'path' || kind === 'change' || kind === 'member';
}
