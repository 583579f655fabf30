import type { TimeSlice } from '../fairness/time-slice.ts';

const valuesBetweenPauses = 500;

type Container = { array: unknown[] } | ObjectContainer;

interface ObjectContainer {
  readonly object: Record<string, unknown>;
  key: string;
  /** Number of members that were read, those with the same key included. */
  members: number;
}

/** The runtime takes up to 100 ms to list 100,000 keys, so the parser lists those of larger objects. */
const maxListedKeys = 1_000;
const keysOfLargeObjects = new WeakMap<object, Set<string>>();

/** The keys of any object, without a pause if `parseJsonInSlices` made it. */
export function keysOf(object: object): Iterable<string> {
  return keysOfLargeObjects.get(object) ?? Object.keys(object);
}

/**
 * JSON.parse in slices, so that other requests run in between: JSON.parse takes 60 ms for an
 * object of 100,000 keys. Throws a SyntaxError if the text is not valid JSON.
 */
export async function parseJsonInSlices(text: string, slice: TimeSlice): Promise<unknown> {
  const reader = new JsonReader(text);
  const open: Container[] = [];
  for (let values = 1; ; values += 1) {
    if (values % valuesBetweenPauses === 0 && slice.isDue) await slice.rest();
    const container = reader.openContainer();
    let value: unknown;
    if (container !== undefined) {
      if (!reader.skipEmptyEnd(container)) {
        open.push(container);
        continue;
      }
      value = contentOf(container);
    } else {
      value = reader.scalar();
    }
    // The value may be the last one of its container, and this container the last value of the container around it.
    for (;;) {
      const parent = open.at(-1);
      if (parent === undefined) {
        reader.expectEnd();
        return value;
      }
      add(parent, value);
      if (!reader.endsContainer(parent)) break;
      value = contentOf(parent);
      open.pop();
    }
  }
}

function contentOf(container: Container): unknown {
  return 'array' in container ? container.array : container.object;
}

function add(container: Container, value: unknown): void {
  if ('array' in container) container.array.push(value);
  else addMember(container, value);
}

function addMember(container: ObjectContainer, value: unknown): void {
  const { object, key } = container;
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[key] = value;
  }
  container.members += 1;
  if (container.members === maxListedKeys) keysOfLargeObjects.set(object, new Set(Object.keys(object)));
  else if (container.members > maxListedKeys) keysOfLargeObjects.get(object)?.add(key);
}

class JsonReader {
  readonly #text: string;
  #index = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The array or object that begins here; undefined if it is a scalar. */
  openContainer(): Container | undefined {
    const character = this.#next();
    if (character !== '[' && character !== '{') return undefined;
    this.#index += 1;
    return character === '[' ? { array: [] } : { object: {}, key: '', members: 0 };
  }

  /** Whether the container just opened is empty. Of an object with members, reads the first key. */
  skipEmptyEnd(container: Container): boolean {
    if (this.#next() === endOf(container)) {
      this.#index += 1;
      return true;
    }
    if ('object' in container) container.key = this.#key();
    return false;
  }

  /** Whether the container ends after a value. Otherwise reads the comma, and in an object the next key. */
  endsContainer(container: Container): boolean {
    const character = this.#next();
    if (character !== ',' && character !== endOf(container)) throw this.#fault();
    this.#index += 1;
    if (character !== ',') return true;
    if ('object' in container) container.key = this.#key();
    return false;
  }

  scalar(): unknown {
    if (this.#next() === '"') return this.#string();
    scalarPattern.lastIndex = this.#index;
    const token = scalarPattern.exec(this.#text)?.[0];
    if (token === undefined) throw this.#fault();
    this.#index += token.length;
    const literal = literals.get(token);
    return literal === undefined ? Number(token) : literal;
  }

  expectEnd(): void {
    if (this.#next() !== '') throw this.#fault();
  }

  #key(): string {
    if (this.#next() !== '"') throw this.#fault();
    const key = this.#string();
    if (this.#next() !== ':') throw this.#fault();
    this.#index += 1;
    return key;
  }

  #string(): string {
    const begin = this.#index;
    let hasEscape = false;
    for (let index = begin + 1; index < this.#text.length; index += 1) {
      const code = this.#text.charCodeAt(index);
      if (code === backslash) {
        hasEscape = true;
        index += 1;
      } else if (code === quote) {
        this.#index = index + 1;
        if (!hasEscape) return this.#text.slice(begin + 1, index);
        const value: string = JSON.parse(this.#text.slice(begin, index + 1));
        return value;
      } else if (code < blank) {
        throw this.#fault();
      }
    }
    throw this.#fault();
  }

  /** The next character that is not whitespace, without a move past it; the empty string at the end. */
  #next(): string {
    while (blanks.has(this.#text.charCodeAt(this.#index))) this.#index += 1;
    return this.#text.charAt(this.#index);
  }

  /** The message does not quote the input, which may contain a secret. */
  #fault(): SyntaxError {
    return new SyntaxError('The text is not valid JSON.');
  }
}

function endOf(container: Container): string {
  return 'array' in container ? ']' : '}';
}

const scalarPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const literals = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const blank = ' '.charCodeAt(0);
const quote = '"'.charCodeAt(0);
const backslash = '\\'.charCodeAt(0);
const blanks: ReadonlySet<number> = new Set([...' \t\r\n'].map((character) => character.charCodeAt(0)));
