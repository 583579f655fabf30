/** What a run of characters of a query is, for colours and for completion. */
export type TokenKind = 'field' | 'value' | 'quoted' | 'pattern' | 'word' | 'mark';

export interface Token {
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

export interface ScannedQuery {
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
const operator = /(?:AND|OR)(?= |\(|$)/y;
const comparison = />=|<=|>|</y;

class Scanner {
  readonly tokens: Token[] = [];
  readonly terms: Term[] = [];
  readonly #text: string;
  #at = 0;

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
      } else if (this.#length(operator) > 0) this.#token('word', this.#length(operator));
      else if (this.#length(field) > 0) depth = this.#term(depth);
      else this.#token('value', this.#bareEnd(depth > 0) - this.#at);
    }
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
    const opens = this.#opens(name);
    if (opens) {
      // What is inside are terms of their own. The end of this one is set when its parenthesis closes.
      const end = this.#closing(this.#text.indexOf('(', this.#at));
      this.terms[place] = { field: name, start, valueStart, end, depth };
      if (this.#text.startsWith('elemMatch', this.#at)) this.#token('word', 'elemMatch'.length);
      this.#mark(1);
      return depth + 1;
    }
    this.#value(depth > 0);
    this.terms[place] = { field: name, start, valueStart, end: this.#at, depth };
    return depth;
  }

  #opens(name: string): boolean {
    if (name === 'related') return this.#text.startsWith('elemMatch(', this.#at);
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
        else this.#token('pattern', this.#bareEnd(inParentheses) - this.#at);
        return;
      case '(':
        this.#list();
        return;
      case '<':
      case '>':
        this.#comparison();
        return;
      default:
        this.#token('value', this.#bareEnd(inParentheses) - this.#at);
    }
  }

  #comparison(): void {
    this.#mark(this.#length(comparison));
    if (this.#text[this.#at] === '"') this.#quoted('quoted');
  }

  /** A list of values, or the bounds of a range. */
  #list(): void {
    const end = this.#closing(this.#at);
    this.#mark(1);
    while (this.#at < end) {
      const character = this.#text[this.#at];
      if (character === ' ') this.#at += 1;
      else if (character === ',' || (character === ')' && this.#at === end - 1)) this.#mark(1);
      else if (character === '"') this.#quoted('quoted');
      else if (this.#length(comparison) > 0) this.#comparison();
      else if (this.#length(operator) > 0) this.#token('word', this.#length(operator));
      else this.#token('value', Math.max(1, this.#itemEnd(end) - this.#at));
    }
  }

  #itemEnd(end: number): number {
    let open = 0;
    for (let offset = this.#at; offset < end; offset += 1) {
      const character = this.#text[offset];
      if (character === '\\') offset += 1;
      else if (character === '(') open += 1;
      else if (character === ')') {
        if (open === 0) return offset;
        open -= 1;
      } else if (character === ',' && open === 0) return offset;
    }
    return end;
  }

  #quoted(kind: TokenKind): void {
    let offset = this.#at + 1;
    while (offset < this.#text.length && this.#text[offset] !== '"') offset += this.#text[offset] === '\\' ? 2 : 1;
    this.#token(kind, Math.min(offset + 1, this.#text.length) - this.#at);
  }

  /** Where a bare value ends: before the next field, or before the parenthesis that closes its group. */
  #bareEnd(inParentheses: boolean): number {
    let open = 0;
    let offset = this.#at;
    for (; offset < this.#text.length; offset += 1) {
      const character = this.#text[offset];
      if (character === '\\') offset += 1;
      else if (character === ' ') {
        nextField.lastIndex = offset;
        if (nextField.test(this.#text)) return offset;
      } else if (character === '(') open += 1;
      else if (character === ')') {
        if (open === 0 && inParentheses) return offset;
        open -= 1;
      }
    }
    return Math.min(offset, this.#text.length);
  }

  /** The offset after the parenthesis that closes the one at `start`; the end of the text where none does. */
  #closing(start: number): number {
    let open = 0;
    for (let offset = start; offset < this.#text.length; offset += 1) {
      const character = this.#text[offset];
      if (character === '\\') offset += 1;
      else if (character === '"') {
        offset += 1;
        while (offset < this.#text.length && this.#text[offset] !== '"') offset += this.#text[offset] === '\\' ? 2 : 1;
      } else if (character === '(') open += 1;
      else if (character === ')') {
        open -= 1;
        if (open === 0) return offset + 1;
      }
    }
    return this.#text.length;
  }

  #length(pattern: RegExp): number {
    pattern.lastIndex = this.#at;
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
