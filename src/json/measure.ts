export interface JsonMeasure {
  /** Number of values of every kind, those in arrays and objects included. Correct if the text is valid JSON. */
  values: number;
  isTooDeep: boolean;
}

/**
 * Counts the values and the levels of JSON from the characters outside of its strings, before the text is parsed. It
 * stops at the first bracket that is nested too deep.
 *
 * @example
 * measureJson('[1,{"a":[]}]', 3); // { values: 4, isTooDeep: false }
 */
export function measureJson(text: string, maxDepth: number): JsonMeasure {
  let depth = 0;
  let values = 1;
  let inString = false;
  // Whether the last character that is not whitespace has opened an array or an object.
  let hasOpened = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === backslash) index += 1;
      else if (code === quote) inString = false;
      continue;
    }
    if (code <= blank) continue;
    if (code === closeBracket || code === closeBrace) {
      depth -= 1;
      hasOpened = false;
      continue;
    }
    // The first member of an array or an object has no comma before it.
    if (hasOpened || code === comma) values += 1;
    hasOpened = code === openBracket || code === openBrace;
    if (hasOpened) {
      depth += 1;
      if (depth > maxDepth) return { values, isTooDeep: true };
    } else if (code === quote) {
      inString = true;
    }
  }
  return { values, isTooDeep: false };
}

const blank = ' '.charCodeAt(0);
const comma = ','.charCodeAt(0);
const quote = '"'.charCodeAt(0);
const backslash = '\\'.charCodeAt(0);
const openBracket = '['.charCodeAt(0);
const closeBracket = ']'.charCodeAt(0);
const openBrace = '{'.charCodeAt(0);
const closeBrace = '}'.charCodeAt(0);
