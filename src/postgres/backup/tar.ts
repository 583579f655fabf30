import { OperatorError } from '../../core/errors.ts';

// A tar archive (POSIX.1-1988, ustar) of plain files with short names. Nothing more of tar is needed here.

const block = 512;
const maxName = 100;
/** Bytes that may fill an archive up. */
export const maxEnd = 1024 * 1024;

/** The header of a file. The content follows, and then `paddingOf` its size. `at` is in milliseconds since 1970. */
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

/** What fills the last block of a content of this size. */
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
  /** To be read before the next file; what is left of it is skipped. */
  readonly content: AsyncGenerator<Buffer, void>;
}

/** Reads the files of an archive, one after the other. Throws an OperatorError where it is none or is not complete. */
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
    // Programs that pack an archive again may add directories and notes.
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

  /** Reads to the end, where a compressed stream has its checksum. Programs fill the last blocks of an archive with zeros. */
  async takeEnd(): Promise<void> {
    let length = 0;
    for (let rest: Buffer | undefined = this.#rest; rest !== undefined; ) {
      length += rest.length;
      if (length > maxEnd || rest.some((byte) => byte !== 0)) {
        throw new OperatorError('The backup was changed: something comes after its end.');
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
