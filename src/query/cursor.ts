import { foundAt, QueryError } from './query-error.ts';
import { endOfBlanks, fieldAt } from './spans.ts';

/** A place in a query. Offsets are 0-based UTF-16 code units; positions are 1-based code points, for messages. */
export class Cursor {
  readonly text: string;
  offset = 0;
  readonly #positions: Uint16Array | undefined;

  constructor(text: string) {
    this.text = text;
    this.#positions = hasSurrogates.test(text) ? positionsOf(text) : undefined;
  }

  get atEnd(): boolean {
    return this.offset >= this.text.length;
  }

  /** The code unit at the cursor; empty at the end. The grammar only looks at ASCII characters. */
  get next(): string {
    return this.text.charAt(this.offset);
  }

  get position(): number {
    return this.positionAt(this.offset);
  }

  positionAt(offset: number): number {
    return this.#positions?.[offset] ?? offset + 1;
  }

  /** Moves past `literal` and returns true, where the text continues with it. */
  take(literal: string): boolean {
    if (!this.text.startsWith(literal, this.offset)) return false;
    this.offset += literal.length;
    return true;
  }

  expect(literal: string, expected: string): void {
    if (!this.take(literal)) throw this.error(expected);
  }

  /** Moves past blanks and returns their number. U+0020 is the only blank. */
  skipBlanks(): number {
    const start = this.offset;
    this.offset = endOfBlanks(this.text, start);
    return this.offset - start;
  }

  /** The name of the field that begins at `offset` and has its colon, or undefined. The cursor does not move. */
  fieldAt(offset: number): string | undefined {
    return fieldAt(this.text, offset);
  }

  /** The message shows the text up to `end`; without it the word, or the text in double quotes, at `offset`. */
  error(expected: string, offset: number = this.offset, end?: number): QueryError {
    return new QueryError(this.positionAt(offset), `${expected}, ${foundAt(this.text, offset, end)}`);
  }
}

const hasSurrogates = /[\ud800-\udfff]/;

function positionsOf(text: string): Uint16Array {
  const positions = new Uint16Array(text.length + 1);
  let position = 0;
  for (let offset = 0; offset < text.length; offset += 1) {
    const unit = text.charCodeAt(offset);
    if (unit < 0xdc00 || unit > 0xdfff) position += 1;
    positions[offset] = position;
  }
  positions[text.length] = position + 1;
  return positions;
}
