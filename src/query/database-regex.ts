import { measureRegex, RegexFault } from './regex.ts';

/**
 * The regular expression of PostgreSQL that matches the same texts as one in RE2 syntax, for texts in the collation "C".
 * Undefined for an expression with syntax that differs between the two, or with so much repetition that PostgreSQL may
 * need long for it. PostgreSQL matches what is left with a finite automaton, in time linear in the text.
 *
 * @example
 * databaseRegex('^d.*(23|\\d5)$'); // '^d[^\\n]*(?:23|[0123456789]5)$'
 */
export function databaseRegex(source: string): string | undefined {
  if (source.length > maxLength) return undefined;
  const { flags = '' } = /^\(\?(?<flags>[is]{1,2})\)/.exec(source)?.groups ?? {};
  const body = source.slice(flags === '' ? 0 : flags.length + 3);
  const reader = new Reader(body, { ignoresCase: flags.includes('i'), dotIsAny: flags.includes('s') });
  const translated = reader.alternatives(0);
  if (translated === undefined || !reader.isAtEnd || isTooLarge(source)) return undefined;
  return translated.text;
}

const maxLength = 256;
/** Characters with the repetitions written out. */
const maxSize = 256;
const maxRepetitions = 32;

function isTooLarge(source: string): boolean {
  try {
    return measureRegex(source).size > maxSize;
  } catch (error) {
    if (error instanceof RegexFault) return true;
    throw error;
  }
}

interface Translated {
  readonly text: string;
  /** Whether a part is repeated. PostgreSQL compiles repetitions of repetitions slowly. */
  readonly repeats: boolean;
}

interface Flags {
  readonly ignoresCase: boolean;
  readonly dotIsAny: boolean;
}

/** Reads an expression from left to right. Its methods return undefined where the syntax is not one that it translates. */
class Reader {
  readonly #source: string;
  readonly #flags: Flags;
  #offset = 0;

  constructor(source: string, flags: Flags) {
    this.#source = source;
    this.#flags = flags;
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#source.length;
  }

  /** `depth` counts the groups around. `^` and `$` have a meaning only outside of them. */
  alternatives(depth: number): Translated | undefined {
    const branches: string[] = [];
    let repeats = false;
    do {
      const begin = depth === 0 && this.#take(/\^/y) !== undefined ? '^' : '';
      const pieces = this.#pieces(depth);
      if (pieces === undefined) return undefined;
      const end = depth === 0 && this.#take(/\$/y) !== undefined ? '$' : '';
      branches.push(`${begin}${pieces.text === '' ? '(?:)' : pieces.text}${end}`);
      repeats ||= pieces.repeats;
    } while (this.#take(/\|/y) !== undefined);
    return { text: branches.join('|'), repeats };
  }

  #pieces(depth: number): Translated | undefined {
    let text = '';
    let repeats = false;
    while (!this.isAtEnd && !/[|)$]/.test(this.#source[this.#offset] ?? '')) {
      const atom = this.#atom(depth);
      if (atom === undefined) return undefined;
      const repetition = this.#repetition(atom);
      if (repetition === undefined) return undefined;
      text += atom.text + repetition;
      repeats ||= atom.repeats || repetition !== '';
    }
    return { text, repeats };
  }

  #atom(depth: number): (Translated & { readonly isGroup: boolean }) | undefined {
    const single = (text: string) => ({ text, repeats: false, isGroup: false });
    if (this.#take(/\((?:\?:)?(?!\?)/y) !== undefined) {
      const inner = depth < maxDepth ? this.alternatives(depth + 1) : undefined;
      if (inner === undefined || this.#take(/\)/y) === undefined) return undefined;
      return { text: `(?:${inner.text})`, repeats: inner.repeats, isGroup: true };
    }
    if (this.#take(/\./y) !== undefined) return single(this.#flags.dotIsAny ? '.' : '[^\\n]');
    if (this.#take(/\[/y) !== undefined) {
      const members = this.#class();
      return members === undefined ? undefined : single(members);
    }
    const named = this.#take(/\\[dws]/iy);
    if (named !== undefined) return single(this.#written(namedClasses[named[1] ?? ''] ?? [], /[DWS]/.test(named)));
    const character = this.#take(/\\[!-/:-@[-`{-~]|[^\\^$.*+?()[\]{}|]/uy);
    if (character === undefined) return undefined;
    const literal = character.length > 1 && character.startsWith('\\') ? character.slice(1) : character;
    return this.#canFold([literal]) ? single(this.#written([literal], false)) : undefined;
  }

  #class(): string | undefined {
    const isNegated = this.#take(/\^/y) !== undefined;
    const members = new Set<string>();
    for (;;) {
      if (members.size > 0 && this.#take(/\]/y) !== undefined) break;
      const named = this.#take(/\\[dws]/y);
      const range = named === undefined ? this.#take(/[0-9A-Za-z]-[0-9A-Za-z]/y) : undefined;
      const from = range?.codePointAt(0) ?? 0;
      const to = range?.codePointAt(2) ?? 0;
      const one = named ?? range ?? this.#take(/\\[!-/:-@[-`{-~]|[^\\[\]^-]/uy);
      if (one === undefined || to < from) return undefined;
      if (named !== undefined) for (const member of namedClasses[named[1] ?? ''] ?? []) members.add(member);
      else if (range === undefined) members.add(one.startsWith('\\') ? one.slice(1) : one);
      else for (let point = from; point <= to; point++) members.add(String.fromCodePoint(point));
    }
    return this.#canFold(members) ? this.#written([...members], isNegated) : undefined;
  }

  /** The text of a repetition, '' where there is none, undefined where it may take PostgreSQL long. */
  #repetition({ repeats, isGroup }: { repeats: boolean; isGroup: boolean }): string | undefined {
    const [, simple, min, , max] =
      /^(?:([*+?])|\{(\d{1,4})(,(\d{0,4}))?\})\??/.exec(this.#source.slice(this.#offset)) ?? [];
    if (simple === undefined && min === undefined) return /^[*+?{]/.test(this.#rest(1)) ? undefined : '';
    const written = this.#take(/(?:[*+?]|\{[\d,]+\})\??/y) ?? '';
    if (repeats || /^[*+?{]/.test(this.#rest(1))) return undefined;
    if (simple !== undefined) return simple;
    if (isGroup || Math.max(Number(min), Number(max ?? 0)) > maxRepetitions) return undefined;
    if (max !== undefined && max !== '' && Number(max) < Number(min)) return undefined;
    return written.replace(/\?$/, '');
  }

  /** Whether the other cases of these characters are known here: those of ASCII. */
  #canFold(characters: Iterable<string>): boolean {
    return !this.#flags.ignoresCase || [...characters].every((character) => character < '\u0080');
  }

  #written(characters: readonly string[], isNegated: boolean): string {
    const cased = this.#flags.ignoresCase ? [...new Set(characters.flatMap(allCases))] : characters;
    const escaped = cased.map((character) => (/[!-/:-@[-`{-~]/.test(character) ? `\\${character}` : character));
    return cased.length === 1 && !isNegated ? escaped.join('') : `[${isNegated ? '^' : ''}${escaped.join('')}]`;
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#offset;
    const found = pattern.exec(this.#source)?.[0];
    this.#offset += found?.length ?? 0;
    return found;
  }

  #rest(length: number): string {
    return this.#source.slice(this.#offset, this.#offset + length);
  }
}

const maxDepth = 8;

const digits = [...'0123456789'];
const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'];
const namedClasses: Record<string, readonly string[]> = {
  d: digits,
  w: [...digits, ...letters, '_'],
  s: [...'\t\n\f\r '],
  D: digits,
  W: [...digits, ...letters, '_'],
  S: [...'\t\n\f\r '],
};

/** A character of ASCII in both cases, with the two other characters that fold to a letter of ASCII. */
function allCases(character: string): string[] {
  const further: Record<string, string> = { k: '\u212a', s: '\u017f' };
  const lower = character.toLowerCase();
  return [lower, character.toUpperCase(), ...(further[lower] === undefined ? [] : [further[lower]])];
}
