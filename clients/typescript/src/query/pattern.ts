import { bareGlob, literalSource, quoted } from './written.ts';

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

/** Whether a value is there at all: `anyValue` or `noValue`. */
export class Presence {
  readonly word: 'exists' | 'missing';

  constructor(word: 'exists' | 'missing') {
    this.word = word;
  }
}

/** Any value. */
export const anyValue = new Presence('exists');

/** Entries that do not say. */
export const noValue = new Presence('missing');

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
 * A regular expression in the syntax of RE2. It is searched for: anchor it with `^` and `$` for the whole text. Of a
 * RegExp the flags `i`, `m` and `s` count. The service refuses what RE2 has not, such as look-arounds and
 * back-references.
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
export function textTerm(field: string, values: readonly (TextValue | Regex)[] | readonly [Presence]): string {
  if (isPresence(values)) return `${field}:${values[0].word}`;
  if (values.length === 0) throw new TypeError(`${field}() needs at least one value.`);
  const [first] = values;
  // In quotes two backslashes mean one, so doubling every backslash of an expression is correct.
  if (values.length === 1 && first instanceof Regex) return `${field}:~${quoted(first.source)}`;
  const written = values.map(writtenValue);
  if (written.every((text) => text !== undefined)) {
    return written.length === 1 ? `${field}:${written[0]}` : `${field}:(${written.join(', ')})`;
  }
  // The grammar has no list with regular expressions, and no bare text for some globs.
  return `${field}:~${quoted(values.map(sourceOf).join('|'))}`;
}

function isPresence(values: readonly (TextValue | Regex | Presence)[]): values is readonly [Presence] {
  const index = values.findIndex((value) => value instanceof Presence);
  if (index !== -1 && values.length > 1) throw new TypeError('anyValue and noValue stand alone: use or().');
  return index !== -1;
}

function writtenValue(value: TextValue | Regex): string | undefined {
  if (typeof value === 'string') return quoted(value);
  return value instanceof Regex ? undefined : bareGlob(value.parts);
}

function sourceOf(value: TextValue | Regex): string {
  if (value instanceof Regex) return `(?:${value.source})`;
  const parts = typeof value === 'string' ? [value] : value.parts;
  return `(?s:^${parts.map(literalSource).join('.*')}$)`;
}
