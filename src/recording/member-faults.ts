import { childrenOf, kindOf } from '../core/json/members.ts';
import { cellAt, type JsonNode, sizeCell } from '../core/json/tape.ts';
import { isStorable } from '../core/storable-text.ts';

/** Maximum bytes of a change's context as compact JSON. */
const maxContextBytes = 4096;
/** Maximum nesting depth of a context, its own object included. */
const maxContextLevels = 4;

/** The fault of a change's `context`, or undefined. */
export function faultOfContext(context: JsonNode): string | undefined {
  if (kindOf(context) !== 'object') return 'is no object';
  if (cellAt(context.tape.cells, context.node + sizeCell) > maxContextBytes)
    return `has more than ${maxContextBytes} bytes`;
  let level = [context];
  for (let depth = 1; depth <= maxContextLevels; depth++) {
    level = level.flatMap(childrenOf).filter((value) => kindOf(value) === 'object' || kindOf(value) === 'array');
    if (level.length === 0) return undefined;
  }
  return `has more than ${maxContextLevels} levels`;
}

/** Maximum characters of names, ids and actors (contract 6). */
export const maxNameCharacters = 1000;

/** The fault of a name, an id or an actor; undefined if there is none. */
export function faultOfName(text: string): string | undefined {
  if (text === '') return 'is empty';
  if (isLongerThan(text, maxNameCharacters)) return `has more than ${maxNameCharacters} characters`;
  if (text.includes('\0')) return 'has a NUL character';
  return text.isWellFormed() ? undefined : 'has a lone surrogate';
}

/** Maximum characters of a correlation id. */
export const maxCorrelationCharacters = 200;

/** The fault of a correlation id; undefined if there is none. */
export function faultOfCorrelation(id: string): string | undefined {
  return isLongerThan(id, maxCorrelationCharacters)
    ? `has more than ${maxCorrelationCharacters} characters`
    : faultOfName(id);
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
