/** Maximum bytes of an import line without its line ending (contract 6). */
export const maximumLineBytes = 16 * 1024 * 1024;

export interface Line {
  /** 1-based line number. */
  number: number;
  /** The bytes without the line ending, valid until the next line is read; undefined if the line is too long. */
  bytes: Buffer | undefined;
  /** The file offset after the line ending. */
  end: number;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;
const tab = 0x09;
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Splits chunks into lines ending with LF or CR LF. Skips but counts blank lines, and skips a byte order mark. Buffers
 * at most one line of the maximum length; the bytes of a longer line are discarded.
 */
export class LineSplitter {
  readonly #maximum: number;
  #number = 0;
  /** The start of a line whose end has not been read yet. */
  #parts: Buffer[] = [];
  #length = 0;
  /** The offsets of the chunk, and of the end of the current line. */
  #base = 0;
  #end = 0;

  constructor(maximum = maximumLineBytes) {
    this.#maximum = maximum;
  }

  /** The lines that end in this chunk. */
  *split(chunk: Buffer): Generator<Line> {
    let start = this.#skipBlankLines(chunk, 0);
    for (let end = chunk.indexOf(lineFeed, start); end !== -1; end = chunk.indexOf(lineFeed, start)) {
      this.#end = this.#base + end + 1;
      const line = this.#finish(chunk.subarray(start, end));
      if (line !== undefined) yield line;
      start = this.#skipBlankLines(chunk, end + 1);
    }
    this.#keep(chunk.subarray(start));
    this.#base += chunk.length;
  }

  /** The last line, if the file does not end with a line ending. */
  *end(): Generator<Line> {
    if (this.#length === 0) return;
    this.#end = this.#base;
    const line = this.#finish(Buffer.alloc(0));
    if (line !== undefined) yield line;
  }

  /** The start of the next line that is not blank or does not end in this chunk. */
  #skipBlankLines(chunk: Buffer, begin: number): number {
    if (this.#length > 0) return begin;
    const { length } = chunk;
    let lines = 0;
    let start = begin;
    let end = begin;
    while (end < length) {
      const byte = chunk[end];
      end += 1;
      if (byte === lineFeed) {
        if (end - 1 - start > this.#maximum) break;
        lines += 1;
        start = end;
      } else if (byte === carriageReturn ? chunk[end] !== lineFeed : byte !== blank && byte !== tab) break;
    }
    this.#number += lines;
    return start;
  }

  #keep(part: Buffer): void {
    this.#length += part.length;
    // Allows for a carriage return and the byte order mark, which are not part of the line.
    if (this.#length > this.#maximum + 1 + byteOrderMark.length) this.#parts = [];
    else if (part.length > 0) this.#parts.push(part);
  }

  #finish(last: Buffer): Line | undefined {
    this.#number += 1;
    if (this.#length === 0) return this.#line(last);
    this.#keep(last);
    // The line is too long: discards its bytes.
    const bytes = this.#parts.length === 0 ? undefined : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    return bytes === undefined ? { number: this.#number, bytes, end: this.#end } : this.#line(bytes);
  }

  #line(raw: Buffer): Line | undefined {
    const hasMark = this.#number === 1 && raw.subarray(0, byteOrderMark.length).equals(byteOrderMark);
    const hasReturn = raw.at(-1) === carriageReturn;
    const bytes = raw.subarray(hasMark ? byteOrderMark.length : 0, raw.length - (hasReturn ? 1 : 0));
    if (bytes.length > this.#maximum) return { number: this.#number, bytes: undefined, end: this.#end };
    return bytes.every((byte) => byte === blank || byte === tab)
      ? undefined
      : { number: this.#number, bytes, end: this.#end };
  }
}
