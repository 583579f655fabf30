import { hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { decompressedChunks } from '../../recording/decompress.ts';
import type { FilePosition } from './position-store.ts';

/** Bytes of the first line, at most, that tell a file from another one with its inode. */
const maxHead = 1024;

const packedChunk = 64 * 1024;

export const compressed = /\.(?:gz|zst)$/;

/** A compressed file cannot be unpacked to its end. */
export class DamagedFileError extends Error {}

/** What identifies a file on this machine. */
export interface FileNode {
  readonly device: string;
  readonly inode: string;
}

/** A file that is open, and what tells it from others. One that was compressed (`.gz`, `.zst`) is read as what it was. */
export class FollowedFile implements FileNode {
  readonly device: string;
  readonly inode: string;
  /** The file that is read. It is another one where what was followed was copied or compressed. */
  readonly node: FileNode;
  readonly #handle: FileHandle;
  readonly #isCompressed: boolean;
  #unpacked: AsyncGenerator<Buffer> | undefined;
  #rest: Buffer = Buffer.alloc(0);
  /** How far the unpacked bytes were read. */
  #position = 0;

  private constructor(
    handle: FileHandle,
    { node, of, isCompressed }: { node: FileNode; of: FileNode; isCompressed: boolean },
  ) {
    this.#handle = handle;
    this.node = node;
    this.device = of.device;
    this.inode = of.inode;
    this.#isCompressed = isCompressed;
  }

  /** Undefined where there is no such file. `of`: the file that it is a copy of. */
  static async open(path: string, of?: FileNode): Promise<FollowedFile | undefined> {
    try {
      const handle = await open(path);
      const { dev, ino } = await handle.stat({ bigint: true });
      const node = { device: String(dev), inode: String(ino) };
      return new FollowedFile(handle, { node, of: of ?? node, isCompressed: compressed.test(path) });
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Bytes that can be read now. Of a compressed file: those that were. */
  async size(): Promise<number> {
    return this.#isCompressed ? this.#position : (await this.#handle.stat()).size;
  }

  /** When it was written last, in nanoseconds. */
  async writtenAt(): Promise<bigint> {
    return (await this.#handle.stat({ bigint: true })).mtimeNs;
  }

  /** Of a compressed file the positions must not go back. */
  async read(buffer: Buffer, position: number): Promise<Buffer> {
    if (this.#isCompressed) return await this.#readUnpacked(buffer, position);
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, position);
    return buffer.subarray(0, bytesRead);
  }

  /** The hash of its first line, at most so many bytes; undefined while the line has no end. */
  async head(): Promise<{ head: string; headBytes: number } | undefined> {
    const bytes = await this.#beginning(maxHead);
    const end = bytes.indexOf(0x0a);
    const headBytes = end === -1 ? maxHead : end + 1;
    return bytes.length < headBytes ? undefined : { head: hashOf(bytes.subarray(0, headBytes)), headBytes };
  }

  /** Whether it is the file of a position: the same inode, the same first line, and no shorter than what was recorded. */
  async isOf(position: FilePosition): Promise<boolean> {
    return this.device === position.device && this.inode === position.inode && (await this.beginsAs(position));
  }

  /** Whether it has the first line of the file of a position, and is no shorter than what was recorded, as a copy of it. */
  async beginsAs({ head, headBytes, recorded }: FilePosition): Promise<boolean> {
    if (!this.#isCompressed && (await this.size()) < recorded) return false;
    return hashOf(await this.#beginning(headBytes)) === head;
  }

  async close(): Promise<void> {
    await this.#unpacked?.return(undefined);
    await this.#handle.close();
  }

  async #beginning(length: number): Promise<Buffer> {
    if (!this.#isCompressed) {
      const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(length), 0, length, 0);
      return buffer.subarray(0, bytesRead);
    }
    let found = Buffer.alloc(0);
    for await (const chunk of this.#unpack()) {
      found = Buffer.concat([found, chunk]);
      if (found.length >= length) break;
    }
    return found.subarray(0, length);
  }

  async #readUnpacked(buffer: Buffer, position: number): Promise<Buffer> {
    this.#unpacked ??= this.#unpack();
    for (;;) {
      const skipped = Math.min(this.#rest.length, Math.max(0, position - this.#position));
      this.#position += skipped;
      this.#rest = this.#rest.subarray(skipped);
      if (this.#rest.length > 0) break;
      const next = await this.#unpacked.next();
      if (next.done === true) break;
      this.#rest = next.value;
    }
    const length = this.#rest.copy(buffer);
    this.#rest = this.#rest.subarray(length);
    this.#position += length;
    return buffer.subarray(0, length);
  }

  /** The unpacked bytes from the beginning on. */
  async *#unpack(): AsyncGenerator<Buffer> {
    try {
      yield* decompressedChunks(Readable.from(this.#packed()));
    } catch (error) {
      throw new DamagedFileError(error instanceof Error ? error.message : 'it cannot be read');
    }
  }

  /** A stream of the handle would close it at its end. */
  async *#packed(): AsyncGenerator<Buffer> {
    for (let position = 0; ; ) {
      const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(packedChunk), 0, packedChunk, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }
}

function hashOf(bytes: Buffer): string {
  return hash('sha256', bytes, 'hex').slice(0, 32);
}
