import { isStorable } from '../core/storable-text.ts';

/** Maximum characters of names, ids and actors (contract 6). */
export const maxNameCharacters = 1000;

/** The fault of a name, an id or an actor; undefined if there is none. */
export function faultOfName(text: string): string | undefined {
  if (text === '') return 'is empty';
  if (isLongerThan(text, maxNameCharacters)) return `has more than ${maxNameCharacters} characters`;
  if (text.includes('\0')) return 'has a NUL character';
  return text.isWellFormed() ? undefined : 'has a lone surrogate';
}

/** A text as an entry's name, truncated to the maximum; undefined if it is not valid. */
export function shownName(text: string | undefined): string | undefined {
  if (text === undefined || !isStorable(text)) return undefined;
  return text.length <= maxNameCharacters ? text : [...text].slice(0, maxNameCharacters).join('');
}

/** Whether the text has more than `max` code points. */
function isLongerThan(text: string, maximum: number): boolean {
  if (text.length <= maximum) return false;
  return text.length > maximum * 2 || [...text].length > maximum;
}
