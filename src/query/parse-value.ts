import { type Glob, list, type Matcher, type Text } from './ast.ts';
import type { Cursor } from './cursor.ts';
import { type ChoiceField, oneOf, type TextField } from './dialect.ts';
import { parseRegex, type RegexAllowance } from './parse-regex.ts';
import { parseBare, parseQuoted, type Surroundings } from './parse-text.ts';

/** Reads the value of a field that is text, whatever of the four kinds it is. */
export function parseValue(
  cursor: Cursor,
  field: string,
  rule: TextField | ChoiceField,
  surroundings: Surroundings,
  allowance: RegexAllowance,
): Matcher {
  if (rule.kind === 'choice') return parseChoice(cursor, field, rule, surroundings);
  switch (cursor.next) {
    case '(':
      return parseList(cursor, () => parseItem(cursor, inList));
    case '~':
      cursor.offset += 1;
      return parseRegex(cursor, surroundings, allowance);
    case '<':
    case '>':
      throw cursor.error(
        `no range, which ${field} does not take; a value that begins with ${cursor.next} needs double quotes`,
      );
    default:
      return parseItem(cursor, surroundings);
  }
}

const inList: Surroundings = { inParentheses: true, inList: true };

function parseItem(cursor: Cursor, surroundings: Surroundings): Text | Glob {
  return cursor.next === '"' ? parseQuoted(cursor) : parseBare(cursor, surroundings);
}

function parseChoice(cursor: Cursor, field: string, { values }: ChoiceField, surroundings: Surroundings): Matcher {
  const parseOne = (place: Surroundings) => {
    const start = cursor.offset;
    if (cursor.next === '' || '~<>'.includes(cursor.next)) throw cursor.error(choices);
    const item = parseItem(cursor, place);
    if (item.kind !== 'text' || !values.includes(item.text)) throw cursor.error(choices, start);
    return item;
  };
  const choices = `${oneOf(values)}, or a list of them, as the value of ${field}`;
  return cursor.next === '(' ? parseList(cursor, () => parseOne(inList)) : parseOne(surroundings);
}

/** Any of the items in parentheses; blanks round commas go. */
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
