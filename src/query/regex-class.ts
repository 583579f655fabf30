/** The parts of a character class in brackets that decide what its compilation costs. */
export interface RegexClass {
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
