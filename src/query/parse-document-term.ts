import { isJsonNumber, keepsNumberLimits, numberLimits } from '../core/json/number.ts';
import { type Bound, type Comparison, comparison, type Match, type Matcher, match } from './ast.ts';
import type { Cursor } from './cursor.ts';
import type { ValueField } from './dialect.ts';
import { parseRegex, type RegexAllowance } from './parse-regex.ts';
import { parseQuoted, type ValueContext } from './parse-text.ts';
import { parseValue } from './parse-value.ts';

/**
 * Reads the value of a document's field: a comparison, one or two of them in parentheses, two joined by ` AND `, or any value
 * of a text field, a regular expression also in parentheses (contract 9). document-sql.ts decides what a bare value means, for example a number.
 */
export function parseDocumentTerm(
  cursor: Cursor,
  field: string,
  { expressions }: ValueField,
  context: ValueContext,
  allowance: RegexAllowance,
  position: number,
): Match | Comparison {
  if (cursor.next === '<' || cursor.next === '>') return comparison(field, [parseBound(cursor)], position);
  if (/^\([<>]/.test(cursor.text.slice(cursor.offset, cursor.offset + 2))) {
    cursor.offset += 1;
    const first = parseBound(cursor);
    if (cursor.take(')')) return comparison(field, [first], position);
    cursor.expect(' AND ', '" AND " and a second bound, or the ) that ends the range');
    const second = parseBound(cursor);
    cursor.expect(')', 'the ) that ends the range, which has at most two bounds');
    return comparison(field, [first, second], position);
  }
  const refused = expressions ? undefined : /^\(? *~[^ )]*/.exec(cursor.text.slice(cursor.offset))?.[0];
  if (refused !== undefined) {
    throw cursor.error(
      `no regular expression, which ${field} does not take; a value that begins with ~ needs double quotes`,
      cursor.offset,
      cursor.offset + refused.length,
    );
  }
  if (cursor.take('(~')) {
    const expression = parseRegex(cursor, { inParentheses: true, inList: false }, allowance);
    cursor.expect(')', 'the ) that ends the regular expression');
    return match(field, expression, position);
  }
  const start = cursor.offset;
  const matcher = parseValue(cursor, field, { kind: 'text' }, context, allowance);
  if (!numbersOf(matcher).every(keepsNumberLimits)) throw cursor.error(withinLimits, start);
  return match(field, matcher, position);
}

const withinLimits = `a number of at most ${numberLimits.digits} digits whose power of ten is within ±${numberLimits.exponent}`;
const operators = ['>=', '<=', '>', '<'] as const;
const numberHere = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![^ )])/y;

function parseBound(cursor: Cursor): Bound {
  const operator = operators.find((written) => cursor.take(written));
  if (operator === undefined) throw cursor.error('>, >=, < or <= and a number, or a text in double quotes');
  if (cursor.next === '"') return { operator, type: 'string', text: parseQuoted(cursor).text };
  numberHere.lastIndex = cursor.offset;
  const text = numberHere.exec(cursor.text)?.[0];
  if (text === undefined) throw cursor.error(`a number, or a text in double quotes, after ${operator}`);
  if (!keepsNumberLimits(text)) throw cursor.error(withinLimits);
  cursor.offset += text.length;
  return { operator, type: 'number', text };
}

function numbersOf(matcher: Matcher): string[] {
  if (matcher.kind === 'list') return matcher.items.flatMap(numbersOf);
  return matcher.kind === 'text' && !matcher.quoted && isJsonNumber(matcher.text) ? [matcher.text] : [];
}
