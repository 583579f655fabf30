import { AnnalsError } from '../errors.ts';
import {
  braceByte,
  bracketByte,
  cellAt,
  cellsOfNode,
  firstByte,
  firstChild,
  type JsonNode,
  type JsonTape,
  nextChild,
  sizeCell,
} from './tape.ts';

/** The size of a JSON value. */
export interface JsonSize {
  /** Bytes of its UTF-8 text without insignificant whitespace. */
  readonly bytes: number;
  /** Number of values: the value itself and all values inside of it. Keys do not count. */
  readonly values: number;
  /** Levels of nested arrays and objects; 0 for a string, a number, true, false and null. */
  readonly levels: number;
}

/** Maximum size of a stored instance, agent or configuration value (contract 11). */
export const maxDocument = { bytes: 1_048_576, values: 100_000 } as const;

/**
 * The size of a value.
 *
 * @example
 * sizeOfJson(parseJson('{ "a": [1, 2] }')); // { bytes: 11, values: 4, levels: 2 }
 */
export function sizeOfJson({ tape, node }: JsonNode): JsonSize {
  const { values, levels } = countValues(tape, node);
  return { bytes: cellAt(tape.cells, node + sizeCell), values, levels };
}

function countValues(tape: JsonTape, node: number): { values: number; levels: number } {
  const byte = firstByte(tape, node);
  if (byte !== braceByte && byte !== bracketByte) return { values: 1, levels: 0 };
  let values = 1;
  let inner = 0;
  for (let child = firstChild(tape, node); child !== -1; child = nextChild(tape, child)) {
    const size = countValues(tape, byte === braceByte ? child + cellsOfNode : child);
    values += size.values;
    inner = Math.max(inner, size.levels);
  }
  return { values, levels: inner + 1 };
}

/**
 * Throws payload_too_large for a stored document that is larger than `maxDocument`. The message begins with `what`.
 *
 * @example
 * refuseLargeDocument('An agent', { bytes: 12, values: 1 });
 */
export function refuseLargeDocument(what: string, { bytes, values }: Omit<JsonSize, 'levels'>): void {
  const limit =
    bytes > maxDocument.bytes
      ? `${maxDocument.bytes} bytes`
      : values > maxDocument.values
        ? `${maxDocument.values} JSON values`
        : undefined;
  if (limit !== undefined) throw new AnnalsError('payload_too_large', `${what} has at most ${limit}.`);
}

export interface JsonMeasure {
  /** Number of values of every kind, those in arrays and objects included. Correct if the text is valid JSON. */
  values: number;
  isTooDeep: boolean;
}

/** The count stops at the first limit that is exceeded. */
interface JsonLimits {
  readonly maxDepth: number;
  /** Default: no limit. */
  readonly maxValues?: number;
}

/**
 * Counts the values and the levels of JSON from the characters outside of its strings, before the text is parsed. It
 * stops at the first bracket that is nested too deep.
 *
 * @example
 * measureJson('[1,{"a":[]}]', 3); // { values: 4, isTooDeep: false }
 */
export function measureJson(text: string, maxDepth: number): JsonMeasure {
  const meter = new JsonMeter(text, { maxDepth });
  meter.read(text.length);
  return { values: meter.values, isTooDeep: meter.isTooDeep };
}

/** `measureJson` in portions, with a limit of values too. */
export class JsonMeter {
  values = 1;
  isTooDeep = false;
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #maxValues: number;
  #index = 0;
  #depth = 0;
  #inString = false;
  /** Whether the last character that is not whitespace has opened an array or an object. */
  #hasOpened = false;

  constructor(text: string, { maxDepth, maxValues = Number.POSITIVE_INFINITY }: JsonLimits) {
    this.#text = text;
    this.#maxDepth = maxDepth;
    this.#maxValues = maxValues;
  }

  /** Whether the text is read, or a limit exceeded. */
  get isDone(): boolean {
    return this.isTooDeep || this.values > this.#maxValues || this.#index >= this.#text.length;
  }

  /** Reads the next characters. */
  read(characters: number): void {
    const text = this.#text;
    const end = Math.min(text.length, this.#index + characters);
    const maxValues = this.#maxValues;
    let { values } = this;
    let index = this.#index;
    let inString = this.#inString;
    let hasOpened = this.#hasOpened;
    for (; index < end && values <= maxValues; index += 1) {
      const code = text.charCodeAt(index);
      if (inString) {
        if (code === backslash) index += 1;
        else if (code === quote) inString = false;
        continue;
      }
      if (code <= blank) continue;
      if (code === closeBracket || code === closeBrace) {
        this.#depth -= 1;
        hasOpened = false;
        continue;
      }
      // The first member of an array or an object has no comma before it.
      if (hasOpened || code === comma) values += 1;
      hasOpened = code === openBracket || code === openBrace;
      if (hasOpened) {
        this.#depth += 1;
        if (this.#depth > this.#maxDepth) {
          this.isTooDeep = true;
          break;
        }
      } else if (code === quote) {
        inString = true;
      }
    }
    this.values = values;
    this.#index = index;
    this.#inString = inString;
    this.#hasOpened = hasOpened;
  }
}

const blank = ' '.charCodeAt(0);
const comma = ','.charCodeAt(0);
const quote = '"'.charCodeAt(0);
const backslash = '\\'.charCodeAt(0);
const openBracket = '['.charCodeAt(0);
const closeBracket = ']'.charCodeAt(0);
const openBrace = '{'.charCodeAt(0);
const closeBrace = '}'.charCodeAt(0);
