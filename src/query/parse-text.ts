import { type Glob, glob, type Text, text } from './ast.ts';
import type { Cursor } from './cursor.ts';
import { bareSpan, type ValueContext } from './spans.ts';
import { bareParts, operatorWord } from './written.ts';

/** Reads a text in double quotes. `\"` and `\\` stand for `"` and `\`; every other character stands for itself. */
export function parseQuoted(cursor: Cursor): Text {
  return text(unquote(cursor, { looseBackslash: false }), true);
}

/**
 * Moves the cursor past a text in double quotes and returns the unquoted text. A backslash before a character other
 * than `"` and `\` is an error. With `looseBackslash` (a regular expression) it stays in the text.
 */
export function unquote(cursor: Cursor, options: { looseBackslash: boolean }): string {
  const opening = cursor.position;
  let value = '';
  let taken = cursor.offset + 1;
  for (let offset = taken; offset < cursor.text.length; offset += 1) {
    const character = cursor.text[offset];
    if (character === '"') {
      cursor.offset = offset + 1;
      return value + cursor.text.slice(taken, offset);
    }
    if (character !== '\\') continue;
    const escaped = cursor.text[offset + 1];
    if (escaped === '"' || escaped === '\\') {
      value += cursor.text.slice(taken, offset);
      taken = offset + 1;
      offset += 1;
    } else if (!options.looseBackslash) {
      throw cursor.error('" or \\ after a backslash in double quotes', offset + 1);
    }
  }
  throw cursor.error(closingQuoteOf(opening), cursor.text.length);
}

/** What a query lacks that ends in a text in double quotes. */
export function closingQuoteOf(opening: number): string {
  return `the closing double quote of the one at position ${opening}`;
}

/**
 * Reads a bare value: text in which `*` stands for any run of characters (contract 4). The value may contain blanks. It
 * ends before the next field, before the parenthesis that closes its group, at a comma of its list, or at the end of
 * the query. The cursor stops there, before the blanks that follow the value.
 */
export function parseBare(cursor: Cursor, context: ValueContext): Text | Glob {
  const start = cursor.offset;
  refuseStart(cursor, context);
  const end = endOfBare(cursor, context);
  refuseOperators(cursor, start, end);
  cursor.offset = end;
  const parts = bareParts(cursor.text.slice(start, end));
  return parts.length === 1 ? text(parts.join(''), false) : glob(parts);
}

function refuseStart(cursor: Cursor, context: ValueContext): void {
  const { next } = cursor;
  if (next === ' ')
    throw cursor.error('a value right after the colon; one that begins with a blank needs double quotes');
  if (next === '' || (next === ')' && context.inParentheses) || (next === ',' && context.inList)) {
    throw cursor.error(context.inList ? 'a value in the list' : 'a value');
  }
  if ('"(~<>'.includes(next)) throw cursor.error(`a value; one that begins with ${next} needs double quotes here`);
}

function endOfBare(cursor: Cursor, context: ValueContext): number {
  const { end, stray, unclosed } = bareSpan(cursor.text, cursor.offset, context);
  if (stray !== undefined) {
    throw cursor.error('no ) where none is open (write \\) or quote the value)', stray);
  }
  if (unclosed !== undefined) {
    throw cursor.error('a ) in the same value for this ( (write \\( or quote the value)', unclosed, end);
  }
  return end;
}

/** Throws where the value contains AND, OR or NOT as a word: it looks like an operator, so it is not taken as text. */
function refuseOperators(cursor: Cursor, start: number, end: number): void {
  const found = operatorWord.exec(cursor.text.slice(start, end));
  if (found === null) return;
  const word = found[2] ?? '';
  const offset = start + found.index + (found[1] ?? '').length;
  throw cursor.error(`a value without the word ${word}: quote it if it is text, ${insteadOf[word]}`, offset);
}

const insteadOf: Readonly<Record<string, string>> = {
  AND: 'leave it out if it joins two terms',
  OR: 'write compoundLogicalQuery:((…) OR (…)) if it joins two terms',
  NOT: 'queries have no such operator',
};
