// Where the parts of a query end, for the parser and the scanner of pages. They report faults and throw nothing.
import { fieldName } from './written.ts';

/** Where a value is, which decides what ends it. */
export interface ValueContext {
  /** The value is inside the parentheses of a group, an elemMatch or a list, so a `)` ends it. */
  readonly inParentheses: boolean;
  /** The value is an item of a list, so a comma ends it. */
  readonly inList: boolean;
}

/** The end of a value without quotes, and the offsets of parentheses that do not match. */
export interface ValueSpan {
  readonly end: number;
  /** The first `)` that closes none. */
  readonly stray: number | undefined;
  /** The last `(` that is not closed. */
  readonly unclosed: number | undefined;
}

const fieldWithColon = new RegExp(`(${fieldName}):`, 'y');

/** The name of the field with its colon at an offset; undefined if there is none. */
export function fieldAt(text: string, offset: number): string | undefined {
  fieldWithColon.lastIndex = offset;
  return fieldWithColon.exec(text)?.[1];
}

const blank = 0x20;

/** U+0020 is the only blank. */
export function endOfBlanks(text: string, start: number): number {
  let offset = start;
  while (text.charCodeAt(offset) === blank) offset += 1;
  return offset;
}

/** Whether a field follows the blanks at an offset, which ends any value without quotes. */
export function fieldFollows(text: string, offset: number): boolean {
  return text.charCodeAt(offset) === blank && fieldAt(text, endOfBlanks(text, offset)) !== undefined;
}

/**
 * A bare value may contain blanks. It ends before the next field, before the parenthesis that closes its group, at a
 * comma of its list, or with the text; blanks at its end are no part of it.
 */
export function bareSpan(text: string, start: number, context: ValueContext): ValueSpan {
  return span(text, start, context, (offset) =>
    text[offset] === '\\' ? (offset + 1 < text.length && '*(),\\'.includes(text.charAt(offset + 1)) ? 2 : 1) : 0,
  );
}

/**
 * A regular expression without quotes ends like a bare value. Its parentheses are balanced; escaped ones, those in a
 * class or in \Q…\E do not count.
 */
export function expressionSpan(text: string, start: number, { inParentheses }: ValueContext): ValueSpan {
  let literal = false;
  let classEnd = 0;
  return span(text, start, { inParentheses, inList: false }, (offset) => {
    if (literal) {
      literal = !text.startsWith('\\E', offset);
      return literal ? 1 : 2;
    }
    if (offset < classEnd) return 1;
    if (text[offset] === '[') {
      classEnd = readClass(text, offset).end;
      return 1;
    }
    if (text[offset] !== '\\') return 0;
    literal = text[offset + 1] === 'Q';
    // An escaped blank is still a blank: it may end the value.
    return text[offset + 1] === ' ' ? 1 : 2;
  });
}

/** `skip` says how many characters at an offset stand for themselves; 0 for one that may end the value. */
function span(
  text: string,
  start: number,
  { inParentheses, inList }: ValueContext,
  skip: (offset: number) => number,
): ValueSpan {
  const open: number[] = [];
  let stray: number | undefined;
  let offset = start;
  let end = offset;
  while (offset < text.length) {
    if (text[offset] === ' ') {
      if (fieldFollows(text, offset)) break;
      offset = endOfBlanks(text, offset);
      continue;
    }
    const length = skip(offset);
    if (length === 0) {
      const character = text[offset];
      if (character === ',' && inList && open.length === 0) break;
      if (character === '(') open.push(offset);
      if (character === ')' && open.pop() === undefined) {
        if (inParentheses) break;
        stray ??= offset;
      }
    }
    offset += Math.max(1, length);
    end = Math.min(offset, text.length);
  }
  return { end, stray, unclosed: open.at(-1) };
}

/** The parts of a character class in brackets that decide what its compilation costs. */
interface RegexClass {
  /** The offset after the class. A class that is not closed ends with the text. */
  readonly end: number;
  /** Classes such as `\pL` within it. */
  readonly unicodeClasses: number;
  /** The number of characters in its ranges such as `a-z`, together. */
  readonly spanned: number;
}

/**
 * Reads the character class that begins at `start` as RE2 reads it: a `]` that comes first, an escaped one
 * and that of a POSIX class such as `[:alpha:]` do not end it.
 */
export function readClass(pattern: string, start: number): RegexClass {
  let unicodeClasses = 0;
  let spanned = 0;
  let offset = start + 1;
  if (pattern[offset] === '^') offset += 1;
  for (let first = true; offset < pattern.length; first = false) {
    if (pattern[offset] === ']' && !first) return { end: offset + 1, unicodeClasses, spanned };
    const named = namedClassAt(pattern, offset);
    if (named !== undefined) {
      if (isUnicodeClass(named)) unicodeClasses += 1;
      offset += named.length;
      continue;
    }
    const from = readCharacter(pattern, offset);
    offset = from.end;
    // After a `-` comes the end of a range, so `[:` begins no class there.
    if (pattern[offset] === '-' && pattern[offset + 1] !== ']') {
      const to = readCharacter(pattern, offset + 1);
      spanned += Math.max(0, to.codePoint - from.codePoint);
      offset = to.end;
    }
  }
  return { end: pattern.length, unicodeClasses, spanned };
}

/** A class with a name, such as `\d` and `\pL`, and, within brackets, `[:alpha:]`. */
export function namedClassAt(pattern: string, offset: number): string | undefined {
  namedClass.lastIndex = offset;
  return namedClass.exec(pattern)?.[0];
}

export function isUnicodeClass(named: string): boolean {
  return named.startsWith('\\p') || named.startsWith('\\P');
}

/** One character, escapes included. Any reading will do for an escape that RE2 does not know. */
export function readCharacter(pattern: string, offset: number): { end: number; codePoint: number } {
  numericEscape.lastIndex = offset;
  const numeric = numericEscape.exec(pattern);
  if (numeric !== null) {
    const [written, long, short, octal] = numeric;
    const codePoint = octal === undefined ? Number.parseInt(long ?? short ?? '', 16) : Number.parseInt(octal, 8);
    return { end: offset + written.length, codePoint };
  }
  const literal = pattern[offset] === '\\' ? offset + 1 : offset;
  const codePoint = pattern.codePointAt(literal) ?? 0;
  return { end: Math.min(literal + (codePoint > 0xffff ? 2 : 1), pattern.length), codePoint };
}

const namedClass = /\[:\^?[a-z]{1,16}:\]|\\[dDsSwW]|\\[pP](?:\{[^}]{0,64}\}|[^{])/y;
const numericEscape = /\\(?:x\{([0-9a-fA-F]{1,64})\}|x([0-9a-fA-F]{2})|(0[0-7]{0,2}|[1-7][0-7]{1,2}))/y;
