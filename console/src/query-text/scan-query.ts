/** What a run of characters of a query is, for colours and for completion. */
type TokenKind = 'field' | 'value' | 'quoted' | 'pattern' | 'word' | 'mark';

interface Token {
  readonly kind: TokenKind;
  /** Offsets in UTF-16 code units. */
  readonly start: number;
  readonly end: number;
}

/** A term `field:value` as it is written. The text of a query that is still being written may end anywhere. */
export interface Term {
  readonly field: string;
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
  /** The number of groups and elemMatch around it. */
  readonly depth: number;
}

interface ScannedQuery {
  readonly tokens: readonly Token[];
  readonly terms: readonly Term[];
}

/**
 * Reads a query as far as it goes. It never fails: the service says what is wrong, at which position.
 *
 * @example
 * scanQuery('entity:order actor:Jane Doe').terms.length; // 2
 */
export function scanQuery(text: string): ScannedQuery {
  const scanner = new Scanner(text);
  scanner.scan();
  return { tokens: scanner.tokens, terms: scanner.terms };
}

const field = /[A-Za-z_][A-Za-z0-9_.]*:/y;
const nextField = / +[A-Za-z_][A-Za-z0-9_.]*:/y;
const blanks = / +/y;
const operator = /(?:AND|OR)(?= |\(|$)/y;
const comparison = />=|<=|>|</y;
const numberOfBound = /[^ )]+/y;
/** The only characters that a backslash escapes in a value without quotes. */
const escaped = /\\[*(),\\]/y;
/** A class of a regular expression: a `]` that comes first, an escaped one and that of `[:alpha:]` do not end it. */
const patternClass = /\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]?/suy;
const literalPattern = /\\Q.*?(?:\\E|$)/suy;

/** Where a value without quotes stands, which decides what ends it. */
interface ValuePlace {
  readonly inParentheses: boolean;
  readonly inList: boolean;
}

class Scanner {
  readonly tokens: Token[] = [];
  readonly terms: Term[] = [];
  readonly #text: string;
  #at = 0;
  /** The places of the terms whose parenthesis is open. */
  readonly #open: number[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  scan(): void {
    let depth = 0;
    while (this.#at < this.#text.length) {
      const character = this.#text[this.#at];
      if (character === ' ') this.#at += 1;
      else if (character === '(') {
        this.#mark(1);
        depth += 1;
      } else if (character === ')') {
        this.#mark(1);
        depth = Math.max(0, depth - 1);
        this.#closeTerms(depth);
      } else if (this.#length(operator) > 0) this.#token('word', this.#length(operator));
      else if (this.#length(field) > 0) depth = this.#term(depth);
      else this.#token('value', Math.max(1, this.#bareLength({ inParentheses: depth > 0, inList: false })));
    }
    this.#closeTerms(0);
  }

  /** Reads a term and returns the depth after it: a group or an elemMatch opens its parenthesis. */
  #term(depth: number): number {
    const start = this.#at;
    const length = this.#length(field);
    const name = this.#text.slice(start, start + length - 1);
    this.#token('field', length);
    const valueStart = this.#at;
    const place = this.terms.length;
    this.terms.push({ field: name, start, valueStart, end: valueStart, depth });
    if (this.#opens(name)) {
      // What is inside are terms of their own.
      this.#open.push(place);
      if (this.#text.startsWith('elemMatch', this.#at)) this.#token('word', 'elemMatch'.length);
      this.#mark(1);
      return depth + 1;
    }
    this.#value(depth > 0);
    this.#end(place);
    return depth;
  }

  /** Ends the terms whose parenthesis is closed once so many are open. */
  #closeTerms(depth: number): void {
    for (let place = this.#open.at(-1); place !== undefined; place = this.#open.at(-1)) {
      if ((this.terms[place]?.depth ?? 0) < depth) return;
      this.#end(place);
      this.#open.pop();
    }
  }

  #end(place: number): void {
    const term = this.terms[place];
    if (term !== undefined) this.terms[place] = { ...term, end: this.#at };
  }

  #opens(name: string): boolean {
    if (name === 'related' || name === 'change') return this.#text.startsWith('elemMatch(', this.#at);
    return name === 'compoundLogicalQuery' && this.#text[this.#at] === '(';
  }

  #value(inParentheses: boolean): void {
    switch (this.#text[this.#at]) {
      case '"':
        this.#quoted('quoted');
        return;
      case '~':
        this.#mark(1);
        if (this.#text[this.#at] === '"') this.#quoted('pattern');
        else this.#token('pattern', this.#patternLength(inParentheses));
        return;
      case '(':
        this.#list();
        return;
      case '<':
      case '>':
        this.#comparison();
        return;
      default:
        this.#token('value', this.#bareLength({ inParentheses, inList: false }));
    }
  }

  #comparison(): void {
    this.#mark(this.#length(comparison));
    if (this.#text[this.#at] === '"') this.#quoted('quoted');
    else this.#token('value', this.#length(numberOfBound));
  }

  /** A list of values, or the bounds of a range. One that is not closed ends before the next field. */
  #list(): void {
    this.#mark(1);
    // At the beginning of an item no field is looked for.
    for (let atItem = true; this.#at < this.#text.length; ) {
      if (!atItem && this.#length(nextField) > 0) return;
      const character = this.#text[this.#at];
      if (character === ' ') {
        this.#at += 1;
        continue;
      }
      if (character === ')') {
        this.#mark(1);
        return;
      }
      if (character === ',') this.#mark(1);
      else if (character === '"') this.#quoted('quoted');
      else if (this.#length(comparison) > 0) this.#comparison();
      else if (!atItem && this.#length(operator) > 0) this.#token('word', this.#length(operator));
      else this.#token('value', Math.max(1, this.#bareLength({ inParentheses: true, inList: true })));
      atItem = character === ',';
    }
  }

  #quoted(kind: TokenKind): void {
    let offset = this.#at + 1;
    while (offset < this.#text.length && this.#text[offset] !== '"') offset += this.#text[offset] === '\\' ? 2 : 1;
    this.#token(kind, Math.min(offset + 1, this.#text.length) - this.#at);
  }

  /** A bare value ends before the next field, before the parenthesis that closes its group, or at a comma of its list. */
  #bareLength({ inParentheses, inList }: ValuePlace): number {
    let open = 0;
    return this.#lengthOf((offset) => {
      switch (this.#text[offset]) {
        case '\\':
          return this.#length(escaped, offset) || 1;
        case '(':
          open += 1;
          return 1;
        case ')':
          if (open === 0 && inParentheses) return 0;
          open -= 1;
          return 1;
        case ',':
          return inList && open === 0 ? 0 : 1;
        default:
          return 1;
      }
    });
  }

  /** A regular expression ends like a bare value. Parentheses that are escaped or in a class are none of its own. */
  #patternLength(inParentheses: boolean): number {
    let open = 0;
    return this.#lengthOf((offset) => {
      switch (this.#text[offset]) {
        case '\\':
          // An escaped blank is still a blank: it may end the value.
          return this.#length(literalPattern, offset) || (this.#text[offset + 1] === ' ' ? 1 : 2);
        case '[':
          return this.#length(patternClass, offset) || 1;
        case '(':
          open += 1;
          return 1;
        case ')':
          if (open === 0 && inParentheses) return 0;
          open -= 1;
          return 1;
        default:
          return 1;
      }
    });
  }

  /** How far a value goes from here. `step` says how many characters belong together, 0 where the value ends. Blanks at its end are no part of it. */
  #lengthOf(step: (offset: number) => number): number {
    let offset = this.#at;
    let end = offset;
    while (offset < this.#text.length) {
      if (this.#text[offset] === ' ') {
        if (this.#length(nextField, offset) > 0) break;
        offset += this.#length(blanks, offset);
        continue;
      }
      const length = step(offset);
      if (length === 0) break;
      // What belongs together may hold the beginning of a field, which ends every value.
      const nextTerm = this.#fieldWithin(offset, offset + length);
      offset = Math.min(nextTerm ?? offset + length, this.#text.length);
      end = offset;
      if (nextTerm !== undefined) break;
    }
    return end - this.#at;
  }

  /** The offset of the blanks before a field in a range of the text. */
  #fieldWithin(start: number, end: number): number | undefined {
    for (let offset = start + 1; offset < end; offset += 1) {
      if (this.#text[offset] === ' ' && this.#length(nextField, offset) > 0) return offset;
    }
    return undefined;
  }

  #length(pattern: RegExp, offset = this.#at): number {
    pattern.lastIndex = offset;
    return pattern.exec(this.#text)?.[0].length ?? 0;
  }

  #mark(length: number): void {
    this.#token('mark', length);
  }

  #token(kind: TokenKind, length: number): void {
    if (length <= 0) return;
    this.tokens.push({ kind, start: this.#at, end: this.#at + length });
    this.#at += length;
  }
}
