import { isJsonNumber, keepsNumberLimits, numberLimits } from '../core/json/number.ts';
import {
  type Bound,
  type Comparison,
  comparison,
  type Glob,
  list,
  type Match,
  type Matcher,
  match,
  type Text,
  type TimeRange,
  timeRange,
} from './ast.ts';
import type { Cursor } from './cursor.ts';
import { type ChoiceField, oneOf, type TextField, type ValueField } from './dialect.ts';
import { parseInstant } from './instant.ts';
import { parseRegex, type RegexAllowance } from './parse-regex.ts';
import { closingQuoteOf, parseBare, parseQuoted } from './parse-text.ts';
import type { ValueContext } from './spans.ts';
import { boundOperators } from './written.ts';

/**
 * Reads the value of a time field: one comparison, or one or two in parentheses, two joined by ` AND ` (contract 4).
 * Where two bounds are on the same side, the stricter one holds.
 */
export function parseRange(cursor: Cursor, field: string, position: number): TimeRange {
  if (!cursor.take('(')) {
    const expected = `a range such as >"2026-08-31T12:00:00Z" as the value of ${field}`;
    return timeRange(field, parseBound(cursor, expected), position);
  }
  const first = parseBound(cursor, '>, >=, < or <= and a time in double quotes');
  if (cursor.take(')')) return timeRange(field, first, position);
  cursor.expect(' AND ', '" AND " and a second bound, or the ) that ends the range');
  const second = parseBound(cursor, `>, >=, < or <= and a time in double quotes`);
  cursor.expect(')', 'the ) that ends the range, which has at most two bounds');
  return timeRange(field, intersect(first, second), position);
}

interface TimeBound {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

function parseBound(cursor: Cursor, expected: string): TimeBound {
  const operator = boundOperators.find((each) => cursor.text.startsWith(each, cursor.offset));
  if (operator === undefined) throw cursor.error(expected);
  cursor.take(operator);
  const opening = cursor.position;
  cursor.expect('"', `a time in double quotes right after ${operator}`);
  const end = cursor.text.indexOf('"', cursor.offset);
  if (end < 0) throw cursor.error(closingQuoteOf(opening), cursor.text.length);
  const instant = parseInstant(cursor.text.slice(cursor.offset, end));
  if (typeof instant === 'string') throw cursor.error(instant, cursor.offset, end);
  cursor.offset = end + 1;
  const { millisecond, whole } = instant;
  // The first millisecond after the bound, or at it.
  const isAfter = operator === '>' || operator === '<=' || !whole;
  const bound = isAfter ? millisecond + 1 : millisecond;
  return operator.startsWith('>') ? { from: bound, to: undefined } : { from: undefined, to: bound };
}

/** The stricter bound on each side. */
function intersect(a: TimeBound, b: TimeBound): TimeBound {
  const from = Math.max(a.from ?? Number.NEGATIVE_INFINITY, b.from ?? Number.NEGATIVE_INFINITY);
  const to = Math.min(a.to ?? Number.POSITIVE_INFINITY, b.to ?? Number.POSITIVE_INFINITY);
  return { from: Number.isFinite(from) ? from : undefined, to: Number.isFinite(to) ? to : undefined };
}

/**
 * Reads the value of a document's field: a comparison, one or two of them in parentheses, two joined by ` AND `, or any
 * value of a text field, a regular expression also in parentheses (contract 9). document-sql.ts decides what a bare
 * value means, for example a number.
 */
export function parseDocumentTerm(
  cursor: Cursor,
  field: string,
  { expressions }: ValueField,
  context: ValueContext,
  allowance: RegexAllowance,
  position: number,
): Match | Comparison {
  if (cursor.next === '<' || cursor.next === '>') return comparison(field, [parseDocumentBound(cursor)], position);
  if (/^\([<>]/.test(cursor.text.slice(cursor.offset, cursor.offset + 2))) {
    cursor.offset += 1;
    const first = parseDocumentBound(cursor);
    if (cursor.take(')')) return comparison(field, [first], position);
    cursor.expect(' AND ', '" AND " and a second bound, or the ) that ends the range');
    const second = parseDocumentBound(cursor);
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
const numberHere = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![^ )])/y;

function parseDocumentBound(cursor: Cursor): Bound {
  const operator = boundOperators.find((written) => cursor.take(written));
  if (operator === undefined) throw cursor.error('>, >=, < or <= and a number, or a text in double quotes');
  if (cursor.next === '"') return { operator, type: 'string', text: parseQuoted(cursor).text };
  numberHere.lastIndex = cursor.offset;
  const number = numberHere.exec(cursor.text)?.[0];
  if (number === undefined) throw cursor.error(`a number, or a text in double quotes, after ${operator}`);
  if (!keepsNumberLimits(number)) throw cursor.error(withinLimits);
  cursor.offset += number.length;
  return { operator, type: 'number', text: number };
}

function numbersOf(matcher: Matcher): string[] {
  if (matcher.kind === 'list') return matcher.items.flatMap(numbersOf);
  return matcher.kind === 'text' && !matcher.quoted && isJsonNumber(matcher.text) ? [matcher.text] : [];
}

/** Reads the value of a text field: a quoted text, a list, a regular expression, or a bare value. */
export function parseValue(
  cursor: Cursor,
  field: string,
  rule: TextField | ChoiceField,
  context: ValueContext,
  allowance: RegexAllowance,
): Matcher {
  if (rule.kind === 'choice') return parseChoice(cursor, field, rule, context);
  if (rule.exact) return parseExact(cursor, field, context);
  switch (cursor.next) {
    case '(':
      return parseList(cursor, () => parseItem(cursor, itemOfList));
    case '~':
      cursor.offset += 1;
      return parseRegex(cursor, context, allowance);
    case '<':
    case '>':
      throw cursor.error(
        `no range, which ${field} does not take; a value that begins with ${cursor.next} needs double quotes`,
      );
    default:
      return parseItem(cursor, context);
  }
}

function parseExact(cursor: Cursor, field: string, context: ValueContext): Matcher {
  const parseOne = (place: ValueContext) => {
    const start = cursor.offset;
    if (cursor.next === '~') throw cursor.error(`no regular expression, which ${field} does not take`);
    const item = parseItem(cursor, place);
    if (item.kind === 'glob') throw cursor.error(`no pattern, which ${field} does not take: quote a *`, start);
    return item;
  };
  return cursor.next === '(' ? parseList(cursor, () => parseOne(itemOfList)) : parseOne(context);
}

const itemOfList: ValueContext = { inParentheses: true, inList: true };

function parseItem(cursor: Cursor, context: ValueContext): Text | Glob {
  return cursor.next === '"' ? parseQuoted(cursor) : parseBare(cursor, context);
}

function parseChoice(cursor: Cursor, field: string, { values }: ChoiceField, context: ValueContext): Matcher {
  const parseOne = (place: ValueContext) => {
    const start = cursor.offset;
    const choices = `${oneOf(values)}${place.inList ? ' in the list' : ', or a list of them in parentheses, as the value'} of ${field}`;
    if (isNoItem(cursor.next, place)) throw cursor.error(choices);
    const item = parseItem(cursor, place);
    if (item.kind !== 'text' || !values.includes(item.text)) throw cursor.error(choices, start, cursor.offset);
    return item;
  };
  return cursor.next === '(' ? parseList(cursor, () => parseOne(itemOfList)) : parseOne(context);
}

function isNoItem(next: string, { inParentheses, inList }: ValueContext): boolean {
  return next === '' || '~<>'.includes(next) || (next === ')' && inParentheses) || (next === ',' && inList);
}

/** Reads a list: items in parentheses with commas between them. Blanks around commas are ignored. */
function parseList(cursor: Cursor, parseOne: () => Text | Glob): Matcher {
  cursor.offset += 1;
  const items: (Text | Glob)[] = [];
  do {
    cursor.skipBlanks();
    items.push(parseOne());
    cursor.skipBlanks();
  } while (cursor.take(','));
  cursor.expect(')', 'a comma, or the ) that ends the list');
  return list(items);
}
