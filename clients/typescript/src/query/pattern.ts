import { quoted } from './query.ts';

/** What a text field may be compared with: a text as it is, or a pattern. */
export type TextValue = string | Glob;

/** A text in which `*` stands for any run of characters. Made by `glob`. */
export class Glob {
  /** The literal texts between the stars. */
  readonly parts: readonly string[];

  constructor(parts: readonly string[]) {
    this.parts = parts;
  }
}

/** A regular expression in the syntax of RE2. Made by `regex`. */
export class Regex {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

/**
 * A pattern for the whole text: `*` stands for any run of characters, `\*` for a star and `\\` for a backslash.
 *
 * @example
 * actor(glob('Jane *'));
 */
export function glob(pattern: string): Glob {
  const parts = [''];
  for (const [token] of pattern.matchAll(/\\[*\\]|[\s\S]/g)) {
    if (token === '*') parts.push('');
    else parts[parts.length - 1] += token.length === 2 ? token.slice(1) : token;
  }
  return new Glob(parts);
}

/**
 * A regular expression in the syntax of RE2. It is searched for: anchor it with `^` and `$` for the whole text. Of a RegExp
 * the flags `i`, `m` and `s` count. The service refuses what RE2 has not, such as look-arounds and back-references.
 *
 * @example
 * actor(regex('^J(an|oh)'));
 */
export function regex(pattern: string | RegExp): Regex {
  if (typeof pattern === 'string') return new Regex(pattern);
  const flags = pattern.flags.replace(/[^ims]/g, '');
  return new Regex(flags === '' ? pattern.source : `(?${flags})${pattern.source}`);
}

/** The term that one of the values matches. Throws TypeError without any, since nothing could match. */
export function textTerm(field: string, values: readonly (TextValue | Regex)[]): string {
  if (values.length === 0) throw new TypeError(`${field}() needs at least one value.`);
  const [first] = values;
  if (values.length === 1 && first instanceof Regex) return `${field}:~${quotedRegex(first.source)}`;
  const written = values.map(writtenValue);
  if (written.every((text) => text !== undefined)) {
    return written.length === 1 ? `${field}:${written[0]}` : `${field}:(${written.join(', ')})`;
  }
  // The grammar has no list with regular expressions, and no bare text for some globs.
  return `${field}:~${quotedRegex(values.map(sourceOf).join('|'))}`;
}

function writtenValue(value: TextValue | Regex): string | undefined {
  if (typeof value === 'string') return quoted(value);
  return value instanceof Regex ? undefined : bareGlob(value);
}

/**
 * A bare value would end before a blank and a word with a colon. These words in it are an error, and blanks at its ends
 * are lost.
 */
const misread = /(?:^|[ (),])(?:AND|OR|NOT)(?![^ (),])| [A-Za-z_][A-Za-z0-9_.]*:|^[ "~<>]| $/;

/** The pattern without quotes; a text in quotes if it has no star; undefined if the query language has no such form. */
export function bareGlob({ parts }: Glob): string | undefined {
  if (parts.length === 1) return quoted(parts.join(''));
  if (misread.test(parts.join('*'))) return undefined;
  return parts.map((part) => part.replace(/[*(),\\]/g, '\\$&')).join('*');
}

function sourceOf(value: TextValue | Regex): string {
  if (value instanceof Regex) return `(?:${value.source})`;
  const parts = typeof value === 'string' ? [value] : value.parts;
  return `(?s:^${parts.map(literalSource).join('.*')}$)`;
}

function literalSource(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/**
 * In quotes two backslashes mean one, and a backslash before any other character stays. So doubling every backslash is
 * always correct.
 */
function quotedRegex(source: string): string {
  return quoted(source);
}
