import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const lengthBytes = 4;
const maxUnwrittenBytes = 1024 * 1024;

/**
 * Records that do not fit in memory, in a file without a name: nobody else can open it, and it is gone when the process ends,
 * however it ends. All are written before the first is read.
 */
export class Spool {
  readonly #file: FileHandle;
  #unwritten: Buffer[] = [];
  #unwrittenBytes = 0;
  #size = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(): Promise<Spool> {
    const path = join(tmpdir(), `annals-${randomUUID()}`);
    const file = await open(path, 'wx+', 0o600);
    await unlink(path);
    return new Spool(file);
  }

  async write(text: string): Promise<void> {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32BE(bytes.length);
    this.#unwritten.push(length, bytes);
    this.#unwrittenBytes += lengthBytes + bytes.length;
    if (this.#unwrittenBytes >= maxUnwrittenBytes) await this.#flush();
  }

  /** What was written, in its order. */
  async *read(): AsyncGenerator<string> {
    await this.#flush();
    let rest = Buffer.alloc(0);
    for (let at = 0; at < this.#size; ) {
      const { buffer, bytesRead } = await this.#file.read(Buffer.alloc(maxUnwrittenBytes), 0, maxUnwrittenBytes, at);
      if (bytesRead === 0) throw new Error('a file of capture is shorter than it was written');
      at += bytesRead;
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      while (rest.length >= lengthBytes) {
        const end = lengthBytes + rest.readUInt32BE(0);
        if (rest.length < end) break;
        yield rest.toString('utf8', lengthBytes, end);
        rest = rest.subarray(end);
      }
    }
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#unwritten);
    this.#unwritten = [];
    this.#unwrittenBytes = 0;
    for (let written = 0; written < bytes.length; ) {
      const { bytesWritten } = await this.#file.write(bytes, written, bytes.length - written, this.#size);
      written += bytesWritten;
      this.#size += bytesWritten;
    }
  }
}
