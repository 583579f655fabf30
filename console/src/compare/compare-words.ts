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

/** Characters of both texts together. Beyond it a comparison could hold the page for seconds. */
const maxCompared = 60_000;
/** Milliseconds. */
const maxDuration = 40;

/**
 * Compares two texts word by word. Undefined where they are too long or have too little in common for that to help.
 *
 * @example
 * compareWords('a red cup', 'a blue cup')?.after; // 'a ', 'blue' (changed), ' cup'
 */
export function compareWords(before: string, after: string): ComparedTexts | undefined {
  if (before.length + after.length > maxCompared) return undefined;
  const changes = diffWordsWithSpace(before, after, { timeout: maxDuration });
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
