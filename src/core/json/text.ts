import { isSameDecimal } from './decimal.ts';
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
function isSameString(first: JsonTape, one: number, second: JsonTape, other: number): boolean {
  if (isSameSource(first, one, second, other)) return true;
  const flags = cellAt(first.cells, one + detailCell) | cellAt(second.cells, other + detailCell);
  return (flags & isEscaped) !== 0 && decodedString(first, one) === decodedString(second, other);
}

/** Whether two keys are the same. */
export function isSameKey(first: JsonTape, one: number, second: JsonTape, other: number): boolean {
  const hash = cellAt(first.cells, one + detailCell) >> 2;
  return hash === cellAt(second.cells, other + detailCell) >> 2 && isSameString(first, one, second, other);
}

/**
 * Whether two values are equal: strings as decoded, numbers by value. The caller does not pass two arrays or two objects.
 * Values of different kinds are never equal.
 */
export function isSameScalar(first: JsonTape, one: number, second: JsonTape, other: number): boolean {
  const byte = byteAt(first.bytes, cellAt(first.cells, one + startCell));
  const otherByte = byteAt(second.bytes, cellAt(second.cells, other + startCell));
  if (byte === quoteByte) return otherByte === quoteByte && isSameString(first, one, second, other);
  if (isSameSource(first, one, second, other)) return true;
  if (!isNumber(byte) || !isNumber(otherByte)) return false;
  return isSameDecimal(sourceText({ tape: first, node: one }), sourceText({ tape: second, node: other }));
}

/** Whether the text that starts with this byte is a number. */
function isNumber(byte: number): boolean {
  return byte === 0x2d || (byte >= 0x30 && byte <= 0x39);
}

/** Whether two nodes have the same bytes. */
function isSameSource(first: JsonTape, one: number, second: JsonTape, other: number): boolean {
  const start = cellAt(first.cells, one + startCell);
  const length = cellAt(first.cells, one + endCell) - start;
  const otherStart = cellAt(second.cells, other + startCell);
  if (cellAt(second.cells, other + endCell) - otherStart !== length) return false;
  const bytes = first.bytes;
  const otherBytes = second.bytes;
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

/**
 * FNV-1a over the bytes of a key. Every process draws a random start value, so that nobody can prepare keys that collide.
 */
export const firstHash = Math.trunc(Math.random() * 0x7fffffff);
export const hashFactor = 0x01000193;
