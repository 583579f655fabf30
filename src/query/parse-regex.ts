import { type Regex, regex } from './ast.ts';
import type { Cursor } from './cursor.ts';
import { unquote } from './parse-text.ts';
import { compileRegex, measureRegex, RegexFault } from './regex.ts';
import { expressionSpan, type ValueContext } from './spans.ts';

/** How much size is left for the regular expressions of one query. Parsing compiles each of them once. */
export interface RegexAllowance {
  work: number;
}

/** Reads a regular expression after its `~`. Without quotes it ends like a bare value (contract 4). */
export function parseRegex(cursor: Cursor, context: ValueContext, allowance: RegexAllowance): Regex {
  const start = cursor.offset;
  const quoted = cursor.next === '"';
  const source = quoted ? unquote(cursor, { looseBackslash: true }) : takeUnquoted(cursor, context);
  try {
    allowance.work -= measureRegex(source).work;
    if (allowance.work < 0) throw new RegexFault(smaller, 0);
    compileRegex(source);
  } catch (error) {
    if (!(error instanceof RegexFault)) throw error;
    const raw = cursor.text.slice(start, cursor.offset);
    const offset = start + (quoted ? offsetInQuotes(raw, error.offset) : error.offset);
    throw cursor.error(error.expected, offset, quoted ? cursor.offset - 1 : cursor.offset);
  }
  return regex(source);
}

const smaller = 'a query whose regular expressions, with counted repetitions written out, are shorter';

function takeUnquoted(cursor: Cursor, context: ValueContext): string {
  const start = cursor.offset;
  const { end, stray, unclosed } = expressionSpan(cursor.text, start, context);
  if (stray !== undefined) throw cursor.error('no ) where none is open in the regular expression', stray);
  if (unclosed !== undefined) throw cursor.error('a ) in the regular expression for each (', unclosed, end);
  if (end === start) throw cursor.error('a regular expression right after the ~');
  cursor.offset = end;
  return cursor.text.slice(start, end);
}

/** The offset in the raw text, with quotes and escapes, of the character at `offset` of the unquoted text. */
function offsetInQuotes(raw: string, offset: number): number {
  let written = 1;
  for (let count = 0; count < offset; count += 1) {
    written += raw[written] === '\\' && (raw[written + 1] === '"' || raw[written + 1] === '\\') ? 2 : 1;
  }
  return written;
}
