import { isUtf8 } from 'node:buffer';
import { duplicateBytes } from './json-duplicates.ts';
import {
  braceByte,
  cellsOfNode,
  detailCell,
  endCell,
  hasDot,
  isEscaped,
  type JsonNode,
  JsonSyntaxError,
  JsonTape,
  nextCell,
  quoteByte,
  sizeCell,
  startCell,
} from './json-tape.ts';
import { firstHash, hashFactor, hashOfEscapedKey } from './json-text.ts';

/** How deep arrays and objects may stand in one another on import (contract 6). */
export const maximumImportDepth = 10_000;

/**
 * Parses one JSON text (RFC 8259, nothing more lenient) without losing how it was written. Of a key given twice
 * in one object the last counts. Throws `JsonSyntaxError`; deeper than `maximumDepth` is one, too.
 */
export function parseJson(text: string | Buffer, maximumDepth = maximumImportDepth): JsonNode {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const isUnicode = typeof text === 'string' ? text.isWellFormed() : isUtf8(text);
  if (!isUnicode) throw new JsonSyntaxError('text that is not Unicode', 0);
  const tape = new JsonTape();
  parseOnTape(tape, bytes, 0, bytes.length, maximumDepth);
  return { tape, node: 0 };
}

/** 1: an ordinary byte of a string; 0: a quote, a backslash or a control character, where scanning has to stop. */
const isPlain = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 || byte === 0x22 || byte === 0x5c ? 0 : 1));

/**
 * Parses `bytes` from `from` to `to`, which must be UTF-8, onto `tape`, whose former content goes; the root is
 * node 0. This is the hot loop of an import: one pass, one function, no recursion, no allocation. While a container
 * is open, its `nextCell` holds its parent and its `sizeCell` the bytes that were insignificant before it.
 */
export function parseOnTape(tape: JsonTape, bytes: Buffer, from: number, to: number, maximumDepth: number): void {
  tape.bytes = bytes;
  let cells = tape.cells;
  let free = 0;
  let position = from;
  let insignificant = 0;
  let depth = 0;
  let container = -1;
  let tail = -1;
  let inObject = false;

  const fail = (expected: string, at: number): never => {
    if (at >= to) throw new JsonSyntaxError(`${expected}, but the text ends`, bytes.toString('utf8', from, to).length);
    throw new JsonSyntaxError(expected, bytes.toString('utf8', from, at).length);
  };

  for (;;) {
    if (free + 2 * cellsOfNode > cells.length) cells = tape.grow(free + 2 * cellsOfNode);
    let byte = position < to ? (bytes[position] as number) : -1;
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      insignificant += 1;
      position += 1;
      byte = position < to ? (bytes[position] as number) : -1;
    }

    if (inObject) {
      if (byte !== quoteByte) fail('expected a key in quotes', position);
      const start = position;
      let hash = firstHash;
      let flags = 0;
      position += 1;
      for (;;) {
        byte = position < to ? (bytes[position] as number) : -1;
        if (byte === quoteByte) break;
        if (byte === 0x5c) {
          flags |= isEscaped;
          position = afterEscape(bytes, position, to, fail);
          continue;
        }
        if (byte < 0x20) fail('expected the end of the string', position);
        if (byte === 0x2e) flags |= hasDot;
        hash = Math.imul(hash ^ byte, hashFactor);
        position += 1;
      }
      position += 1;
      if ((flags & isEscaped) !== 0) hash = hashOfEscapedKey(bytes, start, position);
      if (tail === -1) cells[container + detailCell] = free;
      else cells[tail + nextCell] = free;
      tail = free;
      cells[free + startCell] = start;
      cells[free + endCell] = position;
      cells[free + nextCell] = -1;
      cells[free + detailCell] = ((hash ^ (hash >>> 15)) << 2) | flags;
      cells[free + sizeCell] = position - start;
      free += cellsOfNode;

      byte = position < to ? (bytes[position] as number) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] as number) : -1;
      }
      if (byte !== 0x3a) fail('expected a colon', position);
      position += 1;
      byte = position < to ? (bytes[position] as number) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] as number) : -1;
      }
    } else if (container !== -1) {
      if (tail === -1) cells[container + detailCell] = free;
      else cells[tail + nextCell] = free;
      tail = free;
    }

    const node = free;
    const start = position;
    free += cellsOfNode;
    cells[node + startCell] = start;
    cells[node + nextCell] = -1;

    if (byte === quoteByte) {
      let flags = 0;
      position += 1;
      for (;;) {
        while (position < to && isPlain[bytes[position] as number] === 1) position += 1;
        byte = position < to ? (bytes[position] as number) : -1;
        if (byte === quoteByte) break;
        if (byte !== 0x5c) fail('expected the end of the string', position);
        flags = isEscaped;
        position = afterEscape(bytes, position, to, fail);
      }
      position += 1;
      cells[node + detailCell] = flags;
    } else if (byte === braceByte || byte === 0x5b) {
      if (depth === maximumDepth) fail('nested too deep', position);
      depth += 1;
      cells[node + nextCell] = container;
      cells[node + sizeCell] = insignificant;
      cells[node + detailCell] = -1;
      container = node;
      tail = -1;
      inObject = byte === braceByte;
      position += 1;
      byte = position < to ? (bytes[position] as number) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] as number) : -1;
      }
      if (byte !== (inObject ? 0x7d : 0x5d)) continue;
    } else if (byte === 0x2d || (byte >= 0x30 && byte <= 0x39)) {
      position = afterNumber(bytes, position, to, fail);
    } else if (byte === 0x74 && isWord(bytes, position, to, 'true')) {
      position += 4;
    } else if (byte === 0x66 && isWord(bytes, position, to, 'false')) {
      position += 5;
    } else if (byte === 0x6e && isWord(bytes, position, to, 'null')) {
      position += 4;
    } else {
      fail('expected a value', position);
    }
    cells[node + endCell] = position;
    if (container !== node) cells[node + sizeCell] = position - start;

    // What may follow a value: a comma, or the ends of any number of containers.
    for (;;) {
      byte = position < to ? (bytes[position] as number) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] as number) : -1;
      }
      if (container === -1) {
        if (position < to) fail('expected the end of the text', position);
        return;
      }
      if (byte === 0x2c) {
        position += 1;
        break;
      }
      if (byte !== (inObject ? 0x7d : 0x5d)) {
        fail(
          inObject ? 'expected a comma or the end of the object' : 'expected a comma or the end of the array',
          position,
        );
      }
      position += 1;
      if (inObject && tail !== -1) insignificant += duplicateBytes(tape, container);
      const parent = cells[container + nextCell] as number;
      cells[container + endCell] = position;
      cells[container + sizeCell] =
        position - (cells[container + startCell] as number) - (insignificant - (cells[container + sizeCell] as number));
      cells[container + nextCell] = -1;
      depth -= 1;
      if (parent !== -1) {
        inObject = bytes[cells[parent + startCell] as number] === braceByte;
        tail = inObject ? container - cellsOfNode : container;
      }
      container = parent;
    }
  }
}

type Fail = (expected: string, position: number) => never;

/** The position after the escape that starts at `position`. */
function afterEscape(bytes: Buffer, position: number, to: number, fail: Fail): number {
  const letter = position + 1 < to ? (bytes[position + 1] as number) : -1;
  switch (letter) {
    case 0x22:
    case 0x5c:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return position + 2;
    case 0x75:
      for (let digit = position + 2; digit < position + 6; digit += 1) {
        const byte = digit < to ? (bytes[digit] as number) : -1;
        const isHex =
          (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
        if (!isHex) fail('expected four hexadecimal digits', digit);
      }
      return position + 6;
    default:
      return fail('expected an escape', position + 1);
  }
}

/** The position after the number that starts at `position`. */
function afterNumber(bytes: Buffer, start: number, to: number, fail: Fail): number {
  let position = start;
  let byte = bytes[position] as number;
  if (byte === 0x2d) {
    position += 1;
    byte = position < to ? (bytes[position] as number) : -1;
  }
  if (byte === 0x30) position += 1;
  else position = afterDigits(bytes, position, to, fail);
  byte = position < to ? (bytes[position] as number) : -1;
  if (byte === 0x2e) {
    position = afterDigits(bytes, position + 1, to, fail);
    byte = position < to ? (bytes[position] as number) : -1;
  }
  if (byte === 0x65 || byte === 0x45) {
    position += 1;
    byte = position < to ? (bytes[position] as number) : -1;
    if (byte === 0x2b || byte === 0x2d) position += 1;
    position = afterDigits(bytes, position, to, fail);
  }
  return position;
}

function afterDigits(bytes: Buffer, start: number, to: number, fail: Fail): number {
  let position = start;
  while (position < to) {
    const byte = bytes[position] as number;
    if (byte < 0x30 || byte > 0x39) break;
    position += 1;
  }
  if (position === start) fail('expected a digit', position);
  return position;
}

function isWord(bytes: Buffer, position: number, to: number, word: string): boolean {
  if (position + word.length > to) return false;
  for (let index = 1; index < word.length; index += 1) {
    if (bytes[position + index] !== word.charCodeAt(index)) return false;
  }
  return true;
}
