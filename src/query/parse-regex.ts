import { type Regex, regex } from './ast.ts';
import type { Cursor } from './cursor.ts';
import { afterBlanks, unquote, type ValueContext } from './parse-text.ts';
import { compileRegex, measureRegex, RegexFault, readClass } from './regex.ts';

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
  const end = endOfUnquoted(cursor, context);
  if (end === start) throw cursor.error('a regular expression right after the ~');
  cursor.offset = end;
  return cursor.text.slice(start, end);
}

/** Finds the end of an unquoted expression. Its parentheses are balanced; escaped ones, those in a class or in \Q…\E do not count. */
function endOfUnquoted(cursor: Cursor, { inParentheses }: ValueContext): number {
  const { text: query } = cursor;
  const open: number[] = [];
  let literal = false;
  let classEnd = 0;
  let offset = cursor.offset;
  let end = offset;
  scan: while (offset < query.length) {
    if (query[offset] === ' ') {
      const { next, endsValue } = afterBlanks(cursor, offset);
      if (endsValue) break;
      offset = next;
      continue;
    }
    if (literal) {
      literal = !query.startsWith('\\E', offset);
      offset += literal ? 1 : 2;
    } else if (offset < classEnd) {
      offset += 1;
    } else {
      switch (query[offset]) {
        case '\\':
          literal = query[offset + 1] === 'Q';
          // An escaped blank is still a blank: it may end the value.
          offset += query[offset + 1] === ' ' ? 1 : 2;
          break;
        case '[':
          classEnd = readClass(query, offset).end;
          offset += 1;
          break;
        case '(':
          open.push(offset);
          offset += 1;
          break;
        case ')':
          if (open.pop() === undefined) {
            if (inParentheses) break scan;
            throw cursor.error('no ) where none is open in the regular expression', offset);
          }
          offset += 1;
          break;
        default:
          offset += 1;
      }
    }
    end = Math.min(offset, query.length);
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined) throw cursor.error('a ) in the regular expression for each (', unclosed, end);
  return end;
}

/** The offset in the raw text, with quotes and escapes, of the character at `offset` of the unquoted text. */
function offsetInQuotes(raw: string, offset: number): number {
  let written = 1;
  for (let count = 0; count < offset; count += 1) {
    written += raw[written] === '\\' && (raw[written + 1] === '"' || raw[written + 1] === '\\') ? 2 : 1;
  }
  return written;
}
