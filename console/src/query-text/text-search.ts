import { bareGlob, bareParts } from '../../../src/query/written.ts';
import { allTime } from '../history/time-choices.ts';
import { writtenTime } from './edit-query.ts';

/** Characters of a query that the service takes. */
const maxLength = 4_096;

const isNumber = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/**
 * The query for all changes with a text inside a value before or after; undefined where the language has none. A number is
 * found as a value too.
 *
 * @example
 * queryOfText('oak (dark)');
 * // compoundLogicalQuery:((change:elemMatch(before:*oak \(dark\)*)) OR (change:elemMatch(after:*oak \(dark\)*))) occurredAt:…
 */
export function queryOfText(text: string): string | undefined {
  if (text === '' || text.includes('\0') || !text.isWellFormed()) return undefined;
  // Where a blank would begin another term, any text may stand between the words.
  const glob = bareGlob(['', text, '']) ?? bareGlob(['', ...text.split(' '), '']);
  if (glob === undefined) return undefined;
  const value = isNumber.test(text) ? `(${glob}, ${text})` : glob;
  const found = `compoundLogicalQuery:((change:elemMatch(before:${value})) OR (change:elemMatch(after:${value})))`;
  const q = `${found} ${writtenTime({ from: allTime })}`;
  return [...q].length > maxLength ? undefined : q;
}

const ofText = /compoundLogicalQuery:\(\(change:elemMatch\(before:(.+)\)\) OR \(change:elemMatch\(after:\1\)\)\)/s;

/** The texts that `queryOfText` has written into a query, in their order; none where it has none. */
export function textsOfQuery(q: string): readonly string[] {
  const [, value = ''] = ofText.exec(q) ?? [];
  return bareParts(value.replace(/^\((\*.*\*), [^,]*\)$/s, '$1')).filter((part) => part !== '');
}
