import { type JsonArray, JsonNumber, type JsonObject, type JsonValue } from './json-value.ts';
import { finish, type Steps } from './steps.ts';

/**
 * Reads JSON (RFC 8259) and keeps every number's text and the order of members. Of members with one key the last
 * counts. Nesting has no limit. Throws SyntaxError with the position, counted from 0.
 *
 * @example
 * stringifyJson(parseJson('{"10":1.10,"2":-0}')); // '{"10":1.10,"2":-0}'
 */
export function parseJson(text: string): JsonValue {
  return finish(parseJsonSteps(text));
}

/**
 * The same in steps of about 500 values, for a text so long that other work must run in between.
 *
 * @example
 * const value = await finishInSlices(parseJsonSteps(text), async () => await scheduler.yield());
 */
export function parseJsonSteps(text: string): Steps<JsonValue> {
  return new Reader(text).read();
}

/** Values that a step reads. */
const stepSize = 500;

type Container = { readonly array: JsonArray } | { readonly object: JsonObject; key: string };

const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
/** A quote, a backslash or a control character, where the scan of a string must stop. */
const notPlain = /[^ !#-[\]-\uffff]/g;
const words: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

class Reader {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
  }

  *read(): Steps<JsonValue> {
    const open: Container[] = [];
    for (let count = 1; ; count += 1) {
      if (count % stepSize === 0) yield;
      let value = this.#value();
      // Opened: its first value or its end comes next.
      if (value instanceof Map || Array.isArray(value)) {
        const container = value instanceof Map ? { object: value, key: '' } : { array: value };
        if (!this.#take(closing(container))) {
          if ('object' in container) container.key = this.#key();
          open.push(container);
          continue;
        }
      }
      // A value may be the last of any number of containers.
      for (;;) {
        const container = open.at(-1);
        if (container === undefined) {
          this.#skipBlanks();
          if (this.#position < this.#text.length) throw this.#fault('the end of the text');
          return value;
        }
        if ('object' in container) container.object.set(container.key, value);
        else container.array.push(value);
        if (this.#take(',')) {
          if ('object' in container) container.key = this.#key();
          break;
        }
        const end = closing(container);
        if (!this.#take(end)) throw this.#fault(`, or ${end}`);
        open.pop();
        value = 'object' in container ? container.object : container.array;
      }
    }
  }

  /** A scalar, or an empty container whose opening bracket has been read. */
  #value(): JsonValue {
    this.#skipBlanks();
    const text = this.#text;
    switch (text[this.#position]) {
      case '"':
        return this.#string();
      case '{':
        this.#position += 1;
        return new Map();
      case '[':
        this.#position += 1;
        return [];
    }
    number.lastIndex = this.#position;
    const digits = number.exec(text)?.[0];
    if (digits !== undefined) {
      this.#position += digits.length;
      return new JsonNumber(digits);
    }
    for (const [word, value] of words) {
      if (!text.startsWith(word, this.#position)) continue;
      this.#position += word.length;
      return value;
    }
    throw this.#fault('a value');
  }

  #key(): string {
    this.#skipBlanks();
    if (this.#text[this.#position] !== '"') throw this.#fault('a key in quotes');
    const key = this.#string();
    if (!this.#take(':')) throw this.#fault('a colon');
    return key;
  }

  #string(): string {
    const text = this.#text;
    const start = this.#position;
    notPlain.lastIndex = start + 1;
    let index = notPlain.exec(text)?.index ?? text.length;
    const isEscaped = text[index] === '\\';
    if (isEscaped) index = this.#endOfEscaped(index);
    this.#position = index;
    if (index >= text.length) {
      this.#position = text.length;
      throw this.#fault('the end of the string');
    }
    if (text[index] !== '"') throw this.#fault('a control character to be escaped');
    this.#position = index + 1;
    return isEscaped ? this.#unescaped(start) : text.slice(start + 1, index);
  }

  /**
   * Where a string with escapes stops. A search by pattern would restart at each escape, of which there may be
   * millions.
   */
  #endOfEscaped(from: number): number {
    const text = this.#text;
    let index = from;
    while (index < text.length) {
      const code = text.charCodeAt(index);
      if (code === 0x22 || code < 0x20) break;
      index += code === 0x5c ? 2 : 1;
    }
    return index;
  }

  #unescaped(start: number): string {
    try {
      return JSON.parse(this.#text.slice(start, this.#position));
    } catch {
      this.#position = start;
      throw this.#fault('a string whose escapes are valid');
    }
  }

  #take(character: string): boolean {
    this.#skipBlanks();
    if (this.#text[this.#position] !== character) return false;
    this.#position += 1;
    return true;
  }

  #skipBlanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#position);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#position += 1;
    }
  }

  #fault(expected: string): SyntaxError {
    return new SyntaxError(`Expected ${expected} at position ${this.#position} of the JSON.`);
  }
}

function closing(container: Container): '}' | ']' {
  return 'object' in container ? '}' : ']';
}
