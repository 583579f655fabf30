import { bareSpan, expressionSpan, fieldAt, type ValueContext } from './spans.ts';
import { boundOperators, fieldName } from './written.ts';

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

const nextField = new RegExp(` +${fieldName}:`, 'y');
const operator = /(?:AND|OR)(?= |\(|$)/y;
const comparison = new RegExp(boundOperators.join('|'), 'y');
const numberOfBound = /[^ )]+/y;

class Scanner {
  readonly tokens: Token[] = [];
  readonly terms: Term[] = [];
  readonly #text: string;
  #at = 0;
  /** The indexes of the terms whose parenthesis is open. */
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
      else if (fieldAt(this.#text, this.#at) !== undefined) depth = this.#term(depth);
      else this.#bare({ inParentheses: depth > 0, inList: false }, 1);
    }
    this.#closeTerms(0);
  }

  /** Reads a term and returns the depth after it: a group or an elemMatch opens its parenthesis. */
  #term(depth: number): number {
    const start = this.#at;
    const name = fieldAt(this.#text, start) ?? '';
    this.#token('field', name.length + 1);
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
        else {
          const context = { inParentheses, inList: false };
          this.#token('pattern', expressionSpan(this.#text, this.#at, context).end - this.#at);
        }
        return;
      case '(':
        this.#list();
        return;
      case '<':
      case '>':
        this.#comparison();
        return;
      default:
        this.#bare({ inParentheses, inList: false });
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
      else this.#bare({ inParentheses: true, inList: true }, 1);
      atItem = character === ',';
    }
  }

  #quoted(kind: TokenKind): void {
    let offset = this.#at + 1;
    while (offset < this.#text.length && this.#text[offset] !== '"') offset += this.#text[offset] === '\\' ? 2 : 1;
    this.#token(kind, Math.min(offset + 1, this.#text.length) - this.#at);
  }

  #bare(context: ValueContext, min = 0): void {
    this.#token('value', Math.max(min, bareSpan(this.#text, this.#at, context).end - this.#at));
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
