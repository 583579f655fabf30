import { literalSource } from '../../../src/query/written.ts';
import type { IconName } from '../components/icon.tsx';
import type { Target } from '../router/router.tsx';

/** Something that a word has found. Enter, and a click, lead to its view. */
export interface Found {
  /** Tells it from the others of its source. */
  readonly key: string;
  readonly label: string;
  /** What it is, or what one sees there. */
  readonly hint: string;
  readonly to: Target;
  /** Whether the text is its id, so that it comes before all others. */
  readonly isExact?: boolean;
}

/** What one kind of things is found by. */
export interface Source {
  /** The heading of its results. */
  readonly title: string;
  readonly icon: IconName;
  /** Without one of these scopes nothing is found in it; left out: everybody may see all of it. */
  readonly scopes?: readonly string[];
  /** Whether it has something to offer before a word is written. */
  readonly withoutWords?: boolean;
  readonly find: (text: string, signal: AbortSignal) => Found[] | Promise<Found[]>;
}

/** What a source has found. */
export interface FoundGroup {
  readonly source: Source;
  readonly items: readonly Found[];
  /** Of the search, which did not succeed. */
  readonly error: unknown;
}

/** The words of a text, in small letters. */
function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Whether each word of a text begins one of the words of a name. */
export function hasWords(name: string, text: string): boolean {
  const words = wordsOf(name);
  return wordsOf(text).every((start) => words.some((word) => word.startsWith(start)));
}

/** The regular expression for names in which a text begins a word, ignoring case. */
export function wordPattern(text: string): string {
  return `(?i)(^|[^\\p{L}\\p{N}])${literalSource(text)}`;
}
