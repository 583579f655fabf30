import { compareCodePoints } from '../search/names/search-names.ts';

/** The words of a text: runs of letters, digits and marks. */
function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

/** Characters of a word that the directory stores: the index takes some 2,000 bytes. */
export const maxWordCharacters = 100;

/**
 * The words of a text as the directory stores them, in order, each once. Words that are equal by Unicode's simple
 * folding are equal here, and some others. Except for the final sigma, no mapping of Unicode depends on the neighbours.
 */
export function foldedWords(text: string): string[] {
  const folded = wordsOf(text).map((word) => word.toLowerCase().toUpperCase().toLowerCase().replaceAll('ς', 'σ'));
  return [...new Set(folded.map((word) => [...word].slice(0, maxWordCharacters).join('')))].sort(compareCodePoints);
}

export interface DocumentMatch {
  readonly isAny: boolean;
  /** The words that the name must have; none: no name matches. */
  readonly words: readonly string[];
  matchesId(entityId: string): boolean;
  matchesName(name: string | null): boolean;
}

/**
 * A document matches if its id begins with the text, or if each word of the text begins a word of its name. Names are
 * case-insensitive (Unicode's simple folding).
 */
export function documentMatch(prefix: string): DocumentMatch {
  const words = wordsOf(prefix);
  // The flags `iu` fold as Unicode's simple folding does.
  const begins = words.map((word) => new RegExp(`^${RegExp.escape(word)}`, 'iu'));
  return {
    isAny: prefix === '',
    words,
    matchesId: (entityId) => entityId.startsWith(prefix),
    matchesName(name) {
      if (name === null || words.length === 0) return false;
      const ofName = wordsOf(name);
      return begins.every((begin) => ofName.some((word) => begin.test(word)));
    },
  };
}
