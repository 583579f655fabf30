import { diffWordsWithSpace } from 'diff';

/** A run of characters of one of two texts. */
export interface WordRun {
  readonly text: string;
  readonly changed: boolean;
}

export interface ComparedTexts {
  readonly before: readonly WordRun[];
  readonly after: readonly WordRun[];
}

/**
 * Characters of both texts together, and words and blanks that are added or removed. The steps of a comparison grow with
 * the square of these edits: as many take tens of milliseconds.
 */
export const wordLimits = { characters: 60_000, edits: 600 };

/**
 * Compares two texts word by word. Undefined where they are too long or have too little in common for that to help.
 *
 * @example
 * compareWords('a red cup', 'a blue cup')?.after; // 'a ', 'blue' (changed), ' cup'
 */
export function compareWords(before: string, after: string): ComparedTexts | undefined {
  if (before.length + after.length > wordLimits.characters) return undefined;
  const changes = diffWordsWithSpace(before, after, { maxEditLength: wordLimits.edits });
  if (changes === undefined) return undefined;
  const kept = changes.reduce(
    (sum, { added, removed, value }) => sum + (added || removed ? 0 : value.trim().length),
    0,
  );
  if (kept * 5 < Math.max(before.length, after.length)) return undefined;
  const side = (other: 'added' | 'removed') =>
    changes
      .filter((change) => !change[other])
      .map(({ value, added, removed }) => ({ text: value, changed: added || removed }));
  return { before: side('added'), after: side('removed') };
}
