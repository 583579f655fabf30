import { escapeLike, likePattern } from '../../query/like-pattern.ts';
import type { ResolvedMatcher } from '../plan/expression.ts';

/** Ids that are like a pattern, and between which texts the index of ids has their first characters. */
export interface IdRange {
  readonly from: string;
  /** Itself outside. */
  readonly before: string;
  /** A pattern of LIKE. */
  readonly like: string;
}

/** The characters of an id that the index `change_entry_id` has. An id may be too long for an index. */
export const indexedCharacters = 64;

/** The range of a pattern that says how an id begins; undefined for any other matcher. */
export function idRangeOf(matcher: ResolvedMatcher): IdRange | undefined {
  if (matcher.kind !== 'glob') return undefined;
  const from = prefixOf(matcher.parts);
  const before = from === '' ? undefined : textAfter(from);
  return before === undefined ? undefined : { from, before, like: likePattern(matcher) };
}

/** The pattern of LIKE for the indexed characters of such ids; undefined where the pattern does not say how they begin. */
export function likeOfPrefix(parts: readonly string[]): string | undefined {
  const prefix = prefixOf(parts);
  return prefix === '' ? undefined : `${escapeLike(prefix)}%`;
}

function prefixOf([first = '']: readonly string[]): string {
  return [...first].slice(0, indexedCharacters).join('');
}

/** The first text, in the order of code points, after all that begin with a text. */
function textAfter(text: string): string | undefined {
  const points = [...text];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // Surrogates are no characters.
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  return undefined;
}
