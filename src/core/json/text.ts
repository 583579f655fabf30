import {
  braceByte,
  byteAt,
  cellAt,
  cellsOfNode,
  detailCell,
  endCell,
  isEscaped,
  type JsonNode,
  type JsonTape,
  nextCell,
  quoteByte,
  sizeCell,
  startCell,
} from './tape.ts';

/** The parts of a number as it was written: its value is 0.DIGITS * 10^(exponent + shift), negative or not. */
interface Decimal {
  isNegative: boolean;
  /** Without zeros at either end; empty for zero. */
  digits: string;
  /** The exponent of the text: a sign and any number of digits. */
  exponent: string;
  /** What the position of the decimal point adds to the exponent. */
  shift: number;
}

/**
 * Whether two JSON numbers have the same decimal value: 1.10 = 11e-1, -0 = 0, 9007199254740993 ≠ 9007199254740992. The
 * result is exact. The time is linear in the text for every exponent, because no power is ever calculated.
 */
export function isSameDecimal(first: string, second: string): boolean {
  const [a, b] = [decimalOf(first), decimalOf(second)];
  if (a.digits !== b.digits) return false;
  if (a.digits === '') return true;
  if (a.isNegative !== b.isNegative) return false;
  return exponentDifference(a.exponent, b.exponent) === b.shift - a.shift;
}

function decimalOf(text: string): Decimal {
  const isNegative = text.startsWith('-');
  const mark = text.search(/[eE]/);
  const mantissa = text.slice(isNegative ? 1 : 0, mark === -1 ? text.length : mark);
  const point = mantissa.indexOf('.');
  const whole = point === -1 ? mantissa : mantissa.slice(0, point);
  const all = point === -1 ? whole : whole + mantissa.slice(point + 1);
  let start = 0;
  while (start < all.length && all.charCodeAt(start) === 0x30) start += 1;
  let end = all.length;
  while (end > start && all.charCodeAt(end - 1) === 0x30) end -= 1;
  return {
    isNegative,
    digits: all.slice(start, end),
    exponent: mark === -1 ? '0' : text.slice(mark + 1),
    shift: whole.length - start,
  };
}

/** If two exponents differ by more than this, no position of the decimal point can make the numbers equal. */
const farApart = 2 ** 31;

/** `first - second`, or infinity if they are far apart. It starts at the highest digit, so it never overflows. */
function exponentDifference(first: string, second: string): number {
  const firstSign = first.startsWith('-') ? -1 : 1;
  const secondSign = second.startsWith('-') ? -1 : 1;
  const firstDigits = first.replace(/^[+-]/, '');
  const secondDigits = second.replace(/^[+-]/, '');
  const places = Math.max(firstDigits.length, secondDigits.length);
  let difference = 0;
  for (let place = places; place > 0; place -= 1) {
    difference = difference * 10 + firstSign * digitAt(firstDigits, place) - secondSign * digitAt(secondDigits, place);
    if (Math.abs(difference) > farApart) return Number.POSITIVE_INFINITY;
  }
  return difference;
}

/** The digit at a position from the right; the first position is 1. */
function digitAt(digits: string, place: number): number {
  return place > digits.length ? 0 : digits.charCodeAt(digits.length - place) - 0x30;
}

/** The text of a value as it was written. */
export function sourceText({ tape, node }: JsonNode): string {
  return textBetween(tape, cellAt(tape.cells, node + startCell), cellAt(tape.cells, node + endCell));
}

/** The text of a value without insignificant whitespace. Each number and string is as it was written. */
export function compactText({ tape, node }: JsonNode): string {
  const size = cellAt(tape.cells, node + sizeCell);
  if (size === cellAt(tape.cells, node + endCell) - cellAt(tape.cells, node + startCell))
    return sourceText({ tape, node });
  const target = Buffer.allocUnsafe(size);
  writeCompact(tape, node, target, 0);
  return target.toString('utf8');
}

/** The decoded text of a string or a key. It may contain lone surrogates, which JSON can write. */
export function decodedString(tape: JsonTape, node: number): string {
  const start = cellAt(tape.cells, node + startCell);
  const end = cellAt(tape.cells, node + endCell);
  return (cellAt(tape.cells, node + detailCell) & isEscaped) === 0
    ? textBetween(tape, start + 1, end - 1)
    : JSON.parse(textBetween(tape, start, end));
}

function textBetween({ ascii, bytes }: JsonTape, start: number, end: number): string {
  return ascii === undefined ? bytes.toString('utf8', start, end) : ascii.slice(start, end);
}

/** Whether two strings or keys decode to the same text, however each is written. */
function isSameString(tape: JsonTape, node: number, otherTape: JsonTape, otherNode: number): boolean {
  if (isSameSource(tape, node, otherTape, otherNode)) return true;
  const flags = cellAt(tape.cells, node + detailCell) | cellAt(otherTape.cells, otherNode + detailCell);
  return (flags & isEscaped) !== 0 && decodedString(tape, node) === decodedString(otherTape, otherNode);
}

/** Whether two keys are the same. */
export function isSameKey(tape: JsonTape, node: number, otherTape: JsonTape, otherNode: number): boolean {
  const hash = cellAt(tape.cells, node + detailCell) >> 2;
  return (
    hash === cellAt(otherTape.cells, otherNode + detailCell) >> 2 && isSameString(tape, node, otherTape, otherNode)
  );
}

/**
 * Whether two values are equal: strings as decoded, numbers by value. The caller does not pass two arrays or two
 * objects. Values of different kinds are never equal.
 */
export function isSameScalar(tape: JsonTape, node: number, otherTape: JsonTape, otherNode: number): boolean {
  const byte = byteAt(tape.bytes, cellAt(tape.cells, node + startCell));
  const otherByte = byteAt(otherTape.bytes, cellAt(otherTape.cells, otherNode + startCell));
  if (byte === quoteByte) return otherByte === quoteByte && isSameString(tape, node, otherTape, otherNode);
  if (isSameSource(tape, node, otherTape, otherNode)) return true;
  if (!isNumber(byte) || !isNumber(otherByte)) return false;
  return isSameDecimal(sourceText({ tape, node }), sourceText({ tape: otherTape, node: otherNode }));
}

/** Whether the text that starts with this byte is a number. */
function isNumber(byte: number): boolean {
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39);
}

/** Whether two nodes have the same bytes. */
function isSameSource(tape: JsonTape, node: number, otherTape: JsonTape, otherNode: number): boolean {
  const start = cellAt(tape.cells, node + startCell);
  const length = cellAt(tape.cells, node + endCell) - start;
  const otherStart = cellAt(otherTape.cells, otherNode + startCell);
  if (cellAt(otherTape.cells, otherNode + endCell) - otherStart !== length) return false;
  const bytes = tape.bytes;
  const otherBytes = otherTape.bytes;
  if (length > longCopy) {
    return bytes.compare(otherBytes, otherStart, otherStart + length, start, start + length) === 0;
  }
  for (let index = 0; index < length; index += 1) {
    if (bytes[start + index] !== otherBytes[otherStart + index]) return false;
  }
  return true;
}

/** From this many bytes on, the runtime's own copy or comparison is worth its fixed cost. */
const longCopy = 64;

/** Copies `source` from `start` to `end` to `target` at `at`; returns the position after it. */
export function copyBytes(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (end - start > longCopy) return at + source.copy(target, at, start, end);
  let position = at;
  for (let index = start; index < end; index += 1, position += 1) target[position] = byteAt(source, index);
  return position;
}

/** Writes the text of `compactText` to `target` at `at`; returns the position after it. */
export function writeCompact(tape: JsonTape, root: number, target: Buffer, at: number): number {
  const { bytes, cells } = tape;
  const open: number[] = [];
  let position = at;
  let node = root;

  const isObject = (container: number) => bytes[cellAt(cells, container + startCell)] === braceByte;
  const enter = (container: number, child: number) => {
    if (!isObject(container)) return child;
    position = copyBytes(bytes, cellAt(cells, child + startCell), cellAt(cells, child + endCell), target, position);
    target[position] = 0x3a;
    position += 1;
    return child + cellsOfNode;
  };

  for (;;) {
    const start = cellAt(cells, node + startCell);
    const end = cellAt(cells, node + endCell);
    if (cells[node + sizeCell] === end - start) {
      position = copyBytes(bytes, start, end, target, position);
    } else {
      target[position] = byteAt(bytes, start);
      position += 1;
      const child = cellAt(cells, node + detailCell);
      if (child !== -1) {
        open.push(node);
        node = enter(node, child);
        continue;
      }
      target[position] = byteAt(bytes, end - 1);
      position += 1;
    }
    for (;;) {
      const container = open.at(-1);
      if (container === undefined) return position;
      const next = cellAt(cells, (isObject(container) ? node - cellsOfNode : node) + nextCell);
      if (next !== -1) {
        target[position] = 0x2c;
        position += 1;
        node = enter(container, next);
        break;
      }
      target[position] = byteAt(bytes, cellAt(cells, container + endCell) - 1);
      position += 1;
      node = container;
      open.pop();
    }
  }
}

/** The hash of a key with escapes: the same as that of the key without escapes. */
export function hashOfEscapedKey(bytes: Buffer, start: number, end: number): number {
  const decoded: string = JSON.parse(bytes.toString('utf8', start, end));
  let hash = firstHash;
  for (const byte of Buffer.from(decoded)) hash = Math.imul(hash ^ byte, hashFactor);
  return hash;
}

/** FNV-1a over the bytes of a key, with a random start value in each process against prepared collisions. */
export const firstHash = Math.trunc(Math.random() * 0x7fffffff);
export const hashFactor = 0x01000193;
