import { OperatorError } from '../../core/errors.ts';

// The part of tar (POSIX.1-1988, ustar) that backups need: plain files with short names.

const block = 512;
const maxName = 100;
/** Maximum bytes of padding at the end. */
export const maxEnd = 1024 * 1024;

/** The header of a file, followed by its content and `paddingOf` its size. `at` is in milliseconds since 1970. */
export function headerOf(name: string, size: number, at: number): Buffer {
  const header = Buffer.alloc(block);
  const bytes = Buffer.from(name, 'utf8');
  if (bytes.length > maxName) throw new RangeError(`the name ${name} is too long for an archive`);
  const number = (value: number, digits: number) => value.toString(8).padStart(digits, '0');
  bytes.copy(header);
  header.write(number(0o600, 7), 100);
  header.write(number(0, 7), 108);
  header.write(number(0, 7), 116);
  header.write(number(size, 11), 124);
  header.write(number(Math.floor(at / 1000), 11), 136);
  header.write('0', 156);
  header.write('ustar\x0000', 257);
  header.write(`${number(checksumOf(header), 6)}\0 `, 148);
  return header;
}

/** Fills the last block of a content of this size. */
export function paddingOf(size: number): Buffer {
  return Buffer.alloc((block - (size % block)) % block);
}

/** The end of an archive. */
export function endOfArchive(): Buffer {
  return Buffer.alloc(2 * block);
}

export interface ArchivedFile {
  readonly name: string;
  /** In bytes. */
  readonly size: number;
  /** Read it before the next file; the rest is skipped. */
  readonly content: AsyncGenerator<Buffer, void>;
}

/** Reads the files of an archive one after another. Throws an OperatorError if it is malformed or incomplete. */
export async function* readArchive(chunks: AsyncIterable<Buffer>): AsyncGenerator<ArchivedFile, void> {
  const bytes = new ByteReader(chunks);
  for (;;) {
    const header = await bytes.take(block);
    if (header.every((byte) => byte === 0)) {
      await bytes.takeEnd();
      return;
    }
    const size = numberIn(header.subarray(124, 136));
    if (numberIn(header.subarray(148, 156)) !== checksumOf(header) || !Number.isSafeInteger(size)) {
      throw new OperatorError('The file is not a backup of Annals, or it is damaged.');
    }
    const content = bytes.pieces(size);
    const kind = header.toString('latin1', 156, 157);
    // Programs that repack an archive may add directories and extended headers.
    if (kind === '0' || kind === '\0') yield { name: textIn(header.subarray(0, maxName)), size, content };
    for await (const _skipped of content);
    await bytes.take(paddingOf(size).length);
  }
}

/** The sum of the bytes of a header, with blanks in place of the sum itself. */
function checksumOf(header: Buffer): number {
  return header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 32 : byte), 0);
}

function textIn(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? field.length : end);
}

function numberIn(field: Buffer): number {
  return Number.parseInt(textIn(field).trim() || '0', 8);
}

/** Takes bytes from chunks of any length. */
class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async take(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const piece of this.pieces(length)) parts.push(piece);
    return Buffer.concat(parts);
  }

  /** Reads to the end, where a compressed stream has its checksum, past the zeros that pad an archive. */
  async takeEnd(): Promise<void> {
    let length = 0;
    for (let rest: Buffer | undefined = this.#rest; rest !== undefined; ) {
      length += rest.length;
      if (length > maxEnd || rest.some((byte) => byte !== 0)) {
        throw new OperatorError('The backup was altered: something follows its end.');
      }
      const { value, done } = await this.#chunks.next();
      rest = done ? undefined : value;
    }
  }

  async *pieces(length: number): AsyncGenerator<Buffer, void> {
    for (let missing = length; missing > 0; ) {
      if (this.#rest.length === 0) {
        const { value, done } = await this.#chunks.next();
        if (done) throw new OperatorError('The backup is not complete: it ends too early.');
        this.#rest = value;
      }
      const piece = this.#rest.subarray(0, missing);
      this.#rest = this.#rest.subarray(piece.length);
      missing -= piece.length;
      yield piece;
    }
  }
}
