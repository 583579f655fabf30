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
      return parseList(cursor, () => parseItem(cursor, inList));
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

const inList: ValueContext = { inParentheses: true, inList: true };

function parseItem(cursor: Cursor, context: ValueContext): Text | Glob {
  return cursor.next === '"' ? parseQuoted(cursor) : parseBare(cursor, context);
}

function parseChoice(cursor: Cursor, field: string, { values }: ChoiceField, context: ValueContext): Matcher {
  const parseOne = (place: ValueContext) => {
    const start = cursor.offset;
    if (cursor.next === '' || '~<>'.includes(cursor.next)) throw cursor.error(choices);
    const item = parseItem(cursor, place);
    if (item.kind !== 'text' || !values.includes(item.text)) throw cursor.error(choices, start);
    return item;
  };
  const choices = `${oneOf(values)}, or a list of them, as the value of ${field}`;
  return cursor.next === '(' ? parseList(cursor, () => parseOne(inList)) : parseOne(context);
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
