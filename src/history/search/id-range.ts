import { likePattern } from '../../query/like-pattern.ts';
import type { ResolvedMatcher } from './plan/expression.ts';

/** A pattern for ids, and the range of texts that they are in. */
export interface IdRange {
  readonly from: string;
  /** The range excludes it. */
  readonly before: string;
  /** A pattern of LIKE. */
  readonly like: string;
}

/** The range of a pattern for the beginning of an id; undefined for any other matcher. */
export function idRangeOf(matcher: ResolvedMatcher): IdRange | undefined {
  if (matcher.kind !== 'glob') return undefined;
  const [from = ''] = matcher.parts;
  const before = from === '' ? undefined : textAfter(from);
  return before === undefined ? undefined : { from, before, like: likePattern(matcher) };
}

/** The first text, in the order of code points, after all texts that begin with `text`; undefined if there is none. */
export function textAfter(text: string): string | undefined {
  const points = [...text];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // Surrogates are not characters.
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  return undefined;
}
