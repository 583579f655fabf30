import { isStorable } from '../core/storable-text.ts';

/** The maximum length of names, ids and actors, in characters (contract 6). */
export const maxNameCharacters = 1000;

/** What is wrong with a text that is to be a name, an id or an actor; undefined where nothing is. */
export function faultOfName(text: string): string | undefined {
  if (text === '') return 'is empty';
  if (isLongerThan(text, maxNameCharacters)) return `has more than ${maxNameCharacters} characters`;
  if (text.includes('\0')) return 'has a NUL character';
  return text.isWellFormed() ? undefined : 'has a lone surrogate';
}

/** A text as the name that an entry shows: cut to the longest, and undefined where it cannot be one. */
export function shownName(text: string | undefined): string | undefined {
  if (text === undefined || !isStorable(text)) return undefined;
  return text.length <= maxNameCharacters ? text : [...text].slice(0, maxNameCharacters).join('');
}

/** Whether the text has more code points than that. */
function isLongerThan(text: string, maximum: number): boolean {
  if (text.length <= maximum) return false;
  return text.length > maximum * 2 || [...text].length > maximum;
}
