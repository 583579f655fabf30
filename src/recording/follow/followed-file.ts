import { hash } from 'node:crypto';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { FilePosition } from './position-store.ts';

/** Bytes of the first line, at most, that tell a file from another one with its inode. */
const maxHead = 1024;

/** A file that is open, and what tells it from others. */
export class FollowedFile {
  readonly device: string;
  readonly inode: string;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle, device: bigint, inode: bigint) {
    this.#handle = handle;
    this.device = String(device);
    this.inode = String(inode);
  }

  /** Undefined where there is no such file. */
  static async open(path: string): Promise<FollowedFile | undefined> {
    try {
      const handle = await open(path);
      const { dev, ino } = await handle.stat({ bigint: true });
      return new FollowedFile(handle, dev, ino);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  async read(buffer: Buffer, position: number): Promise<Buffer> {
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, position);
    return buffer.subarray(0, bytesRead);
  }

  /** The hash of its first line, at most so many bytes; undefined while the line has no end. */
  async head(): Promise<{ head: string; headBytes: number } | undefined> {
    const bytes = await this.read(Buffer.alloc(maxHead), 0);
    const end = bytes.indexOf(0x0a);
    const headBytes = end === -1 ? maxHead : end + 1;
    return bytes.length < headBytes ? undefined : { head: hashOf(bytes.subarray(0, headBytes)), headBytes };
  }

  /** Whether it is the file of a position: the same inode, the same first line, and no shorter than what was recorded. */
  async isOf(position: FilePosition): Promise<boolean> {
    if (this.device !== position.device || this.inode !== position.inode) return false;
    if ((await this.size()) < position.recorded) return false;
    const bytes = await this.read(Buffer.alloc(position.headBytes), 0);
    return hashOf(bytes) === position.head;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** The file of a position under another name in its folder, where it was renamed. */
export async function findRenamed(path: string, position: FilePosition): Promise<FollowedFile | undefined> {
  const folder = dirname(path);
  for (const name of await readdir(folder)) {
    if (name === basename(path) || !name.startsWith(stemOf(path))) continue;
    const file = await FollowedFile.open(join(folder, name)).catch(() => undefined);
    if (file === undefined) continue;
    if (await file.isOf(position).catch(() => false)) return file;
    await file.close();
  }
  return undefined;
}

/** `app.ndjson` may become `app.ndjson.1` or `app-2026.ndjson`. */
function stemOf(path: string): string {
  return basename(path).replace(/\.[^.]*$/, '');
}

function hashOf(bytes: Buffer): string {
  return hash('sha256', bytes, 'hex').slice(0, 32);
}
