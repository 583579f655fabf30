/**
 * A parsed JSON document as a tape. A node is five integers in a row; its name is the index of the first one. The
 * parser decodes nothing: a node has the position of its text in `bytes`, and the first byte of this text gives its
 * kind. So values keep their source text (contract 6), and a line of an import creates no garbage.
 */
export class JsonTape {
  bytes: Buffer = Buffer.alloc(0);
  /** The same text as a string, if each of its characters is one byte: a slice of it is faster than decoding bytes. */
  ascii: string | undefined;
  cells: Int32Array = new Int32Array(1024 * cellsOfNode);
  /** First bytes of scalars that equal no other value: a mask stands there, and the values that it hides differ. */
  unequal: ReadonlySet<number> | undefined;
  /** A key that comes again later in its object; -1 without one. */
  repeatedKey = -1;

  /** Grows the tape to at least `length` cells. */
  grow(length: number): Int32Array {
    const cells = new Int32Array(Math.max(length, this.cells.length * 2));
    cells.set(this.cells);
    this.cells = cells;
    return cells;
  }
}

/** The byte at a position of `bytes`; -1 outside of it. */
export function byteAt(bytes: Buffer, position: number): number {
  return bytes[position] ?? -1;
}

/** The number in a cell of a tape; -1 if there is no such cell. */
export function cellAt(cells: Int32Array, index: number): number {
  return cells[index] ?? -1;
}

export const cellsOfNode = 5;
/** First byte of the node's text. A key is a node too: a string, and its value is the node right after it. */
export const startCell = 0;
/** The byte after the node's last byte. */
export const endCell = 1;
/** The next key of the object, or the next element of the array; -1 after the last. */
export const nextCell = 2;
/**
 * For an object or array: its first key or element, -1 if it is empty. For a string: `isEscaped`, `hasDot` (keys only)
 * and, from bit 2 on, a hash of the decoded key.
 */
export const detailCell = 3;
/** Bytes of the node's text without insignificant whitespace and without overridden members. */
export const sizeCell = 4;

export const isEscaped = 1;
export const hasDot = 2;

/** The first byte of a node. It gives the node's kind. */
export const quoteByte = 0x22;
export const braceByte = 0x7b;
export const bracketByte = 0x5b;

/** One value of a parsed document. */
export interface JsonNode {
  readonly tape: JsonTape;
  readonly node: number;
}

/** The text is not valid JSON (RFC 8259). `position` counts UTF-16 units from 0. */
export class JsonSyntaxError extends Error {
  readonly position: number;

  constructor(expected: string, position: number) {
    super(`${expected} at character ${position + 1}`);
    this.name = 'JsonSyntaxError';
    this.position = position;
  }
}

/** The first byte of a node's text. */
export function firstByte({ bytes, cells }: JsonTape, node: number): number {
  return byteAt(bytes, cellAt(cells, node + startCell));
}

/** The first key of an object or the first element of an array; -1 if it is empty. */
export function firstChild({ cells }: JsonTape, container: number): number {
  return cellAt(cells, container + detailCell);
}

/** The key or element after this one; -1 after the last. The value of a key is the node right after the key. */
export function nextChild({ cells }: JsonTape, child: number): number {
  return cellAt(cells, child + nextCell);
}
