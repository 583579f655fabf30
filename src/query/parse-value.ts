import { type Glob, list, type Matcher, type Text } from './ast.ts';
import type { Cursor } from './cursor.ts';
import { type ChoiceField, oneOf, type TextField } from './dialect.ts';
import { parseRegex, type RegexAllowance } from './parse-regex.ts';
import { parseBare, parseQuoted, type ValueContext } from './parse-text.ts';

/** Reads the value of a text field: a quoted text, a list, a regular expression, or a bare value. */
export function parseValue(
  cursor: Cursor,
  field: string,
  rule: TextField | ChoiceField,
  context: ValueContext,
  allowance: RegexAllowance,
): Matcher {
  if (rule.kind === 'choice') return parseChoice(cursor, field, rule, context);
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
