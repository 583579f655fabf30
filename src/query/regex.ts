import { RE2JS, RE2JSSyntaxException } from 're2js';
import { isUnicodeClass, namedClassAt, readCharacter, readClass } from './spans.ts';

/**
 * The maximum number of steps that the regular expressions of one query may take together. A step is one unit of a
 * pattern's size at one character of one name, so a pattern of size 10 may be tried on 100 million characters. Measured
 * with re2js 2.10: 0.1 to 10 ns a step for what people write, up to 100 ns for what is made to be slow. So
 * regex-pool.ts limits processor time as well.
 */
export const regexStepBudget = 1_000_000_000;

/** The maximum work of the patterns of one query together. To compile that much takes some 20 ms. */
export const regexWorkLimit = 10_000;

export interface RegexMeasure {
  /** Characters, classes and operators with counted repetitions written out. RE2's program has no more instructions. */
  readonly size: number;
  /** The size, plus the cost to compile classes that are long when written out. */
  readonly work: number;
}

/** An invalid pattern. `offset` counts code units; `expected` follows the word "expected" in the message. */
export class RegexFault extends Error {
  readonly expected: string;
  readonly offset: number;

  constructor(expected: string, offset: number) {
    super(`expected ${expected}`);
    this.name = 'RegexFault';
    this.expected = expected;
    this.offset = offset;
  }
}

/** The steps for trying a pattern on names: each name counts its UTF-16 length and one for its end. */
export function regexSteps(size: number, names: readonly string[]): number {
  let characters = names.length;
  for (const name of names) characters += name.length;
  return size * characters;
}

/** Compiles a pattern for a search that is not anchored, in time linear in the text. Throws RegexFault. */
export function compileRegex(source: string): (name: string) => boolean {
  try {
    const compiled = RE2JS.compile(source);
    return (name) => compiled.test(name);
  } catch (error) {
    const described = error instanceof RE2JSSyntaxException ? error : undefined;
    const fragment = described?.getPattern() ?? '';
    const shown = fragment.length > 40 ? `${fragment.slice(0, 40)}…` : fragment;
    const reason = [described?.getDescription() ?? 'it cannot be compiled', shown]
      .filter((part) => part !== '')
      .join(': ');
    throw new RegexFault(`a regular expression in RE2 syntax (${reason})`, Math.max(0, source.indexOf(fragment)));
  }
}

/**
 * Computes the size of a pattern from its text, without compiling it: `a{1000}` has 1,002. Throws, with the place, for
 * syntax that RE2 leaves out on purpose. The compiler reports other faults of syntax.
 */
export function measureRegex(source: string): RegexMeasure {
  const folds = /\(\?[a-zA-Z-]*i/.test(source);
  const groups = new GroupSizes();
  let classWork = 0;
  for (let offset = 0; offset < source.length; ) {
    const character = source[offset];
    const named = character === '\\' ? namedClassAt(source, offset) : undefined;
    if (named !== undefined) {
      if (isUnicodeClass(named)) classWork += unicodeClassWork;
      groups.atom();
      offset += named.length;
    } else if (source.startsWith('\\Q', offset)) {
      const end = source.indexOf('\\E', offset + 2);
      const literal = source.slice(offset + 2, end < 0 ? source.length : end);
      for (const _ of literal) groups.atom();
      offset = end < 0 ? source.length : end + 2;
    } else if (character === '[') {
      const { end, unicodeClasses, spanned } = readClass(source, offset);
      classWork += unicodeClasses * unicodeClassWork + (end - offset) / 4 + (folds ? spanned / foldedPerWork : 0);
      groups.atom();
      offset = end;
    } else if (character === '(') {
      refuseLookAround(source, offset);
      const opening = matchAt(groupOpening, source, offset);
      if (!opening.endsWith(')')) groups.open();
      offset += opening.length;
    } else if (character === ')') {
      groups.close();
      offset += 1;
    } else if (character === '|') {
      groups.alternative();
      offset += 1;
    } else {
      const [written, min, max] = matchRepetition(source, offset);
      if (written === '') {
        refuseBackReference(source, offset);
        groups.atom();
        offset = readCharacter(source, offset).end;
      } else {
        groups.repeat(min, max);
        offset += written.length;
      }
    }
  }
  return { size: groups.size, work: groups.size + Math.ceil(classWork) };
}

/** A Unicode class takes as long to compile as this many characters, a case-folded range as one for each 50. */
const unicodeClassWork = 48;
const foldedPerWork = 50;

const groupOpening = /\(\?[a-zA-Z-]*[:)]|\(\?P?<[^>]{0,4096}>|\(/y;
const repetition = /(?:[*+?]|\{(\d{1,8})(,?)(\d{0,8})\})\??/y;

function matchAt(pattern: RegExp, source: string, offset: number): string {
  pattern.lastIndex = offset;
  return pattern.exec(source)?.[0] ?? '';
}

function matchRepetition(source: string, offset: number): [written: string, min: number, max: number | undefined] {
  repetition.lastIndex = offset;
  const found = repetition.exec(source);
  if (found === null) return ['', 0, undefined];
  const [written, min, comma, max] = found;
  if (min === undefined) return [written, 0, undefined];
  return [written, Number(min), comma === '' ? Number(min) : max === '' ? undefined : Number(max)];
}

const lookAround = /\(\?<?[=!]/y;
const backReference = /\\(?:[1-7](?![0-7])|[89]|[kg][<{'])/y;

function refuseLookAround(source: string, offset: number): void {
  if (matchAt(lookAround, source, offset) !== '') {
    throw new RegexFault('a regular expression without look-around (RE2 syntax)', offset);
  }
}

function refuseBackReference(source: string, offset: number): void {
  if (matchAt(backReference, source, offset) !== '') {
    throw new RegexFault('a regular expression without back-references (RE2 syntax)', offset);
  }
}

/** Adds sizes up group by group. A repetition multiplies what stands right before it. */
class GroupSizes {
  readonly #outer: { total: number; last: number }[] = [];
  #total = 0;
  #last = 0;

  /** A program ends with an instruction of its own and begins with another. */
  get size(): number {
    return this.#outer.reduce((sum, group) => sum + group.total, Math.max(1, this.#total)) + 2;
  }

  atom(size = 1): void {
    this.#total += size;
    this.#last = size;
  }

  open(): void {
    this.#outer.push({ total: this.#total, last: this.#last });
    this.#total = 0;
    this.#last = 0;
  }

  close(): void {
    const outer = this.#outer.pop();
    if (outer === undefined) return;
    const size = Math.max(1, this.#total) + 2;
    this.#total = outer.total;
    this.atom(size);
  }

  /** One instruction for the choice, and one where an alternative is empty. */
  alternative(): void {
    this.#total += 2;
    this.#last = 0;
  }

  repeat(min: number, max: number | undefined): void {
    const written = max === undefined ? Math.max(1, min) * this.#last + 2 : max * this.#last + max - min;
    // Huge sizes stay finite, so that they still add up.
    const repeated = Math.min(Math.max(1, written), 1e12);
    this.#total += repeated - this.#last;
    this.#last = repeated;
  }
}
