import { JsonNumber } from './json-value.ts';
import { finish, type Steps } from './steps.ts';

/**
 * Writes JSON. It takes what `parseJson` makes, plain values and any mixture: a JsonNumber keeps its text, a Map its
 * order. As in `JSON.stringify`, `toJSON` is asked and members that are undefined are left out. Nesting has no limit.
 * Throws TypeError for a value that JSON cannot express: NaN, an infinity, a function, a value that contains itself.
 *
 * @example
 * stringifyJson({ price: new JsonNumber('1.10') }); // '{"price":1.10}'
 * stringifyJson(value, 2); // on lines, each level two blanks further in
 */
export function stringifyJson(value: unknown, indent = 0): string {
  return finish(stringifyJsonSteps(value, indent));
}

/** Values that a step writes. */
const stepSize = 500;
/** Characters that a step writes. */
const maxStepLength = 500_000;

/** The same in steps of about 500 values or 500,000 characters. */
export function* stringifyJsonSteps(value: unknown, indent = 0): Steps<string> {
  const root = jsonOf(value);
  if (root === undefined) throw new TypeError('undefined cannot be written as JSON.');
  const open: OpenContainer[] = [];
  const inside = new Set<object>();
  let written = '';

  const begin = (part: unknown) => {
    if (typeof part !== 'object' || part === null || part instanceof JsonNumber) {
      written += scalarText(part);
      return;
    }
    if (inside.has(part)) throw new TypeError('A value that contains itself cannot be written as JSON.');
    inside.add(part);
    const isArray = Array.isArray(part);
    open.push({ value: part, isArray, isEmpty: true, members: isArray ? elementsOf(part) : membersOf(part) });
    written += isArray ? '[' : '{';
  };
  const newLine = (level: number) => (indent === 0 ? '' : `\n${' '.repeat(indent * level)}`);

  begin(root);
  let count = 0;
  let stepBegin = 0;
  for (let container = open.at(-1); container !== undefined; container = open.at(-1)) {
    count += 1;
    if (count % stepSize === 0 || written.length - stepBegin > maxStepLength) {
      stepBegin = written.length;
      yield;
    }
    const { value: member, done } = container.members.next();
    if (done === true) {
      open.pop();
      inside.delete(container.value);
      if (!container.isEmpty) written += newLine(open.length);
      written += container.isArray ? ']' : '}';
      continue;
    }
    const [key, part] = member;
    written += `${container.isEmpty ? '' : ','}${newLine(open.length)}`;
    container.isEmpty = false;
    if (!container.isArray) written += `${JSON.stringify(key)}:${indent === 0 ? '' : ' '}`;
    begin(part);
  }
  return written;
}

interface OpenContainer {
  readonly value: object;
  readonly isArray: boolean;
  readonly members: Iterator<readonly [string, unknown], undefined>;
  isEmpty: boolean;
}

function* elementsOf(array: readonly unknown[]): Generator<readonly [string, unknown], undefined> {
  for (const element of array) yield ['', jsonOf(element) ?? null];
}

function* membersOf(object: object): Generator<readonly [string, unknown], undefined> {
  for (const [key, member] of object instanceof Map ? object : Object.entries(object)) {
    const part = jsonOf(member);
    if (part !== undefined) yield [String(key), part];
  }
}

function jsonOf(value: unknown): unknown {
  return hasToJson(value) ? value.toJSON() : value;
}

function hasToJson(value: unknown): value is { toJSON(): unknown } {
  return typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function';
}

function scalarText(value: unknown): string {
  if (value instanceof JsonNumber) return value.text;
  if (typeof value === 'bigint') return String(value);
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number' && Number.isFinite(value)) return JSON.stringify(value);
  throw new TypeError(`${String(value)} cannot be written as JSON.`);
}
