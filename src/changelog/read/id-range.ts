import { escapeLike, likePattern } from '../../query/like-pattern.ts';
import type { ResolvedMatcher } from '../plan/expression.ts';

/** A pattern for ids, and the range of texts in the index that has the first characters of these ids. */
export interface IdRange {
  readonly from: string;
  /** The range excludes it. */
  readonly before: string;
  /** A pattern of LIKE. */
  readonly like: string;
}

/** The number of characters of an id that the index `change_entry_id` has. An id may be too long for an index. */
export const indexedCharacters = 64;

/** The range of a pattern for the beginning of an id; undefined for any other matcher. */
export function idRangeOf(matcher: ResolvedMatcher): IdRange | undefined {
  if (matcher.kind !== 'glob') return undefined;
  const from = prefixOf(matcher.parts);
  const before = from === '' ? undefined : textAfter(from);
  return before === undefined ? undefined : { from, before, like: likePattern(matcher) };
}

/**
 * The LIKE pattern for the indexed characters of such ids; undefined if the pattern is not for the beginning of an id.
 */
export function likeOfPrefix(parts: readonly string[]): string | undefined {
  const prefix = prefixOf(parts);
  return prefix === '' ? undefined : `${escapeLike(prefix)}%`;
}

function prefixOf([first = '']: readonly string[]): string {
  return [...first].slice(0, indexedCharacters).join('');
}

/** The first text, in the order of code points, after all texts that begin with `text`. */
function textAfter(text: string): string | undefined {
  const points = [...text];
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    const next = (last.codePointAt(0) ?? 0) + 1;
    // Surrogates are not characters.
    if (next <= 0x10ffff) return points.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next);
  }
  return undefined;
}
