import { hash } from 'node:crypto';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { decompressedChunks } from '../../recording/decompress.ts';

/** Bytes of the first line, at most, that tell a file from another one with its inode. */
const maxHead = 1024;

const packedChunk = 64 * 1024;

export const compressed = /\.(?:gz|zst)$/;

/** A compressed file cannot be unpacked to its end. */
export class DamagedFileError extends Error {}

/** How far a file has been recorded. */
export interface FilePosition {
  device: string;
  inode: string;
  /** A hash of the first bytes, and how many they are. */
  head: string;
  headBytes: number;
  /** Bytes up to the end of the last line that was recorded. */
  recorded: number;
}

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

interface RotatedFile extends FileNode {
  readonly path: string;
  /** In nanoseconds. */
  readonly writtenAt: bigint;
}

/**
 * The file of a position under another name: renamed, or copied or compressed by what rotates it. A copy has another inode and is known by
 * its first line.
 */
export async function findLeft(path: string, position: FilePosition): Promise<FollowedFile | undefined> {
  const { stem } = partsOf(path);
  for (const name of await readdir(dirname(path))) {
    if (name === basename(path) || !name.startsWith(stem)) continue;
    const file = await FollowedFile.open(join(dirname(path), name)).catch(() => undefined);
    if (file !== undefined && (await file.isOf(position).catch(() => false))) return file;
    await file?.close();
  }
  for (const { path: name } of (await rotatedFiles(path)).reverse()) {
    const file = await FollowedFile.open(name, position);
    if (file !== undefined && (await file.beginsAs(position).catch(() => false))) return file;
    await file?.close();
  }
  return undefined;
}

/** The file that was followed next after this one, before the one that has the name now. Undefined: there was none. */
export async function nextRotated(path: string, { node, ...file }: Pick<FollowedFile, 'node'> & { writtenAt: bigint }) {
  for (;;) {
    const files = await rotatedFiles(path);
    const index = files.findIndex(({ device, inode }) => device === node.device && inode === node.inode);
    // A file that is not there any more was older than all that were written after it.
    const next = index === -1 ? files.find(({ writtenAt }) => writtenAt > file.writtenAt) : files[index + 1];
    if (next === undefined) return undefined;
    const opened = await FollowedFile.open(next.path);
    if (opened?.node.inode === next.inode && opened.node.device === next.device) return opened;
    // It was rotated again in the meantime.
    await opened?.close();
  }
}

/** The rotated files of a path, the oldest first. Of one that is being compressed the original is taken. */
async function rotatedFiles(path: string): Promise<RotatedFile[]> {
  const folder = dirname(path);
  const candidates = (await readdir(folder)).flatMap((name) => {
    const rotation = rotationOf(basename(path), name);
    return rotation === undefined ? [] : [{ name, rotation }];
  });
  const names = new Set(candidates.map(({ name }) => name));
  const originals = candidates.filter(
    ({ name }) => !(compressed.test(name) && names.has(name.replace(compressed, ''))),
  );
  const files = await Promise.all(
    originals
      .sort((a, b) => compareRotations(a.rotation, b.rotation))
      .map(async ({ name }) => {
        const status = await stat(join(folder, name), { bigint: true }).catch(() => undefined);
        if (status === undefined || !status.isFile()) return [];
        const { dev, ino, mtimeNs } = status;
        return [{ path: join(folder, name), device: String(dev), inode: String(ino), writtenAt: mtimeNs }];
      }),
  );
  return files.flat();
}

/** What stands in place of the number or the date: `app.ndjson.1`, `app.ndjson-20260115.gz`, `app-2026-01-15.ndjson`. */
function rotationOf(base: string, name: string): string | undefined {
  const plain = name.replace(compressed, '');
  const { stem, extension } = partsOf(base);
  const between = plain.startsWith(base)
    ? plain.slice(base.length)
    : plain.startsWith(stem) && plain.endsWith(extension)
      ? plain.slice(stem.length, plain.length - extension.length)
      : '';
  return /^[.\-_](\d[\dT:._-]*)$/.exec(between)?.[1];
}

function partsOf(path: string): { stem: string; extension: string } {
  const base = basename(path);
  const extension = /\.[^.]*$/.exec(base)?.[0] ?? '';
  return { stem: base.slice(0, base.length - extension.length), extension };
}

/** A number grows with the age of its file, a date falls. Dates have more digits than a number of rotations has. */
function compareRotations(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [/^\d{1,5}$/.test(a), /^\d{1,5}$/.test(b)];
  if (isNumber && isOtherNumber) return Number(b) - Number(a);
  if (isNumber !== isOtherNumber) return isNumber ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}
