import { isUtf8 } from 'node:buffer';
import { duplicateBytes } from './duplicates.ts';
import { kindOf } from './members.ts';
import { afterEscape, afterNumber, isWord } from './scan.ts';
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
} from './tape.ts';
import { firstHash, hashFactor, hashOfEscapedKey } from './text.ts';

/** Maximum levels of arrays and objects on import (contract 6). */
export const maximumImportDepth = 10_000;

/**
 * Parses one JSON text (strictly RFC 8259) and keeps how it was written. Of duplicate keys the last one counts. Throws
 * `JsonSyntaxError`, also for nesting deeper than `maximumDepth` levels.
 *
 * @example
 * compactText(parseJson('{ "price": 1.10 }')); // '{"price":1.10}'
 */
export function parseJson(text: string | Buffer, maximumDepth = maximumImportDepth): JsonNode {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text;
  const isUnicode = typeof text === 'string' ? text.isWellFormed() : isUtf8(text);
  if (!isUnicode) throw new JsonSyntaxError('text that is not Unicode', 0);
  const tape = new JsonTape();
  parseOnTape(tape, bytes, 0, bytes.length, maximumDepth);
  if (typeof text === 'string' && text.length === bytes.length) tape.ascii = text;
  return { tape, node: 0 };
}

/** 0 for a quote, a backslash or a control character, where the scan of a string stops; 1 for other bytes. */
const isPlain = Uint8Array.from({ length: 256 }, (_, byte) => (byte < 0x20 || byte === 0x22 || byte === 0x5c ? 0 : 1));

/**
 * Parses `bytes` from `from` to `to`, which must be UTF-8, onto `tape`. It overwrites the former content of the tape;
 * the root is node 0. Throws `JsonSyntaxError`. While a container is open, its `nextCell` has its parent, and its
 * `sizeCell` has the number of insignificant bytes before it.
 *
 * This is the hot loop of an import: one pass, one function, no recursion, no allocation. With separate functions for
 * whitespace, keys and strings, it took 10 to 20 % longer.
 *
 * @example
 * const tape = new JsonTape();
 * for (const line of lines) parseOnTape(tape, line, 0, line.length, 100);
 */
export function parseOnTape(tape: JsonTape, bytes: Buffer, from: number, to: number, maximumDepth: number): void {
  tape.bytes = bytes;
  tape.ascii = undefined;
  tape.unequal = undefined;
  tape.repeatedKey = -1;
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
    let byte = position < to ? (bytes[position] ?? -1) : -1;
    while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      insignificant += 1;
      position += 1;
      byte = position < to ? (bytes[position] ?? -1) : -1;
    }

    if (inObject) {
      if (byte !== quoteByte) fail('expected a key in quotes', position);
      const start = position;
      let hash = firstHash;
      let flags = 0;
      position += 1;
      for (;;) {
        byte = position < to ? (bytes[position] ?? -1) : -1;
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

      byte = position < to ? (bytes[position] ?? -1) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] ?? -1) : -1;
      }
      if (byte !== 0x3a) fail('expected a colon', position);
      position += 1;
      byte = position < to ? (bytes[position] ?? -1) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] ?? -1) : -1;
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
        while (position < to && isPlain[bytes[position] ?? -1] === 1) position += 1;
        byte = position < to ? (bytes[position] ?? -1) : -1;
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
      byte = position < to ? (bytes[position] ?? -1) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] ?? -1) : -1;
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

    // A value can be followed by a comma, or by the ends of any number of containers.
    for (;;) {
      byte = position < to ? (bytes[position] ?? -1) : -1;
      while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
        insignificant += 1;
        position += 1;
        byte = position < to ? (bytes[position] ?? -1) : -1;
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
      const parent = cells[container + nextCell] ?? -1;
      cells[container + endCell] = position;
      cells[container + sizeCell] =
        position - (cells[container + startCell] ?? -1) - (insignificant - (cells[container + sizeCell] ?? -1));
      cells[container + nextCell] = -1;
      depth -= 1;
      if (parent !== -1) {
        inObject = bytes[cells[parent + startCell] ?? -1] === braceByte;
        tail = inObject ? container - cellsOfNode : container;
      }
      container = parent;
    }
  }
}

/** Parses a JSON object. Undefined if the text is something else or invalid. */
export function parseObject(text: string | Buffer, maximumDepth?: number): JsonNode | undefined {
  const node = parseIfJson(text, maximumDepth);
  return node !== undefined && kindOf(node) === 'object' ? node : undefined;
}

/** Parses as `parseJson` does. Undefined if the text is invalid. */
export function parseIfJson(text: string | Buffer, maximumDepth?: number): JsonNode | undefined {
  try {
    return parseJson(text, maximumDepth);
  } catch (error) {
    if (error instanceof JsonSyntaxError) return undefined;
    throw error;
  }
}
