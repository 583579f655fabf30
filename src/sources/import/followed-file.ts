import { hash } from 'node:crypto';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { hasCode } from '../../core/errors.ts';
import { decompressedChunks } from '../../recording/decompress.ts';

/** Maximum bytes of the first line that, with the inode, identify a file. */
const maxHead = 1024;

const chunkBytes = 64 * 1024;

export const compressed = /\.(?:gz|zst)$/;

/** A compressed file cannot be decompressed to its end. */
export class DamagedFileError extends Error {}

/** The recorded position of a file. */
export interface FilePosition {
  device: string;
  inode: string;
  /** A hash of the first bytes, and their number. */
  head: string;
  headBytes: number;
  /** The offset after the last recorded line. */
  recorded: number;
}

interface FileNode {
  readonly device: string;
  readonly inode: string;
}

/** An open file. A compressed one (`.gz`, `.zst`) is read decompressed, as the original it was made from. */
export class FollowedFile implements FileNode {
  readonly device: string;
  readonly inode: string;
  /** The file being read: the copy, if the followed file was copied or compressed. */
  readonly node: FileNode;
  readonly #handle: FileHandle;
  readonly #isCompressed: boolean;
  #decompressed: AsyncGenerator<Buffer> | undefined;
  #rest: Buffer = Buffer.alloc(0);
  /** The offset in the decompressed bytes. */
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

  /** Undefined if there is no such file. `of`: the original of a copy. */
  static async open(path: string, of?: FileNode): Promise<FollowedFile | undefined> {
    try {
      const handle = await open(path);
      const { dev, ino } = await handle.stat({ bigint: true });
      const node = { device: String(dev), inode: String(ino) };
      return new FollowedFile(handle, { node, of: of ?? node, isCompressed: compressed.test(path) });
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined;
      throw error;
    }
  }

  /** Readable bytes; of a compressed file, those already read. */
  async size(): Promise<number> {
    return this.#isCompressed ? this.#position : (await this.#handle.stat()).size;
  }

  /** The last modification, in nanoseconds. */
  async writtenAt(): Promise<bigint> {
    return (await this.#handle.stat({ bigint: true })).mtimeNs;
  }

  /** Positions in a compressed file must not decrease. */
  async read(buffer: Buffer, position: number): Promise<Buffer> {
    if (this.#isCompressed) return await this.#readDecompressed(buffer, position);
    const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, position);
    return buffer.subarray(0, bytesRead);
  }

  /** The hash of its first line, or of its first `maxHead` bytes; undefined while the line is incomplete. */
  async head(): Promise<{ head: string; headBytes: number } | undefined> {
    const bytes = await this.#beginning(maxHead);
    const end = bytes.indexOf(0x0a);
    const headBytes = end === -1 ? maxHead : end + 1;
    return bytes.length < headBytes ? undefined : { head: hashOf(bytes.subarray(0, headBytes)), headBytes };
  }

  /** Whether it is the file of a position: same inode, same first line, not shorter. */
  async isOf(position: FilePosition): Promise<boolean> {
    return this.device === position.device && this.inode === position.inode && (await this.beginsAs(position));
  }

  /** Whether it is a copy of the file of a position: same first line, not shorter. */
  async beginsAs({ head, headBytes, recorded }: FilePosition): Promise<boolean> {
    if (!this.#isCompressed && (await this.size()) < recorded) return false;
    return hashOf(await this.#beginning(headBytes)) === head;
  }

  async close(): Promise<void> {
    await this.#decompressed?.return(undefined);
    await this.#handle.close();
  }

  async #beginning(length: number): Promise<Buffer> {
    if (!this.#isCompressed) {
      const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(length), 0, length, 0);
      return buffer.subarray(0, bytesRead);
    }
    let found = Buffer.alloc(0);
    for await (const chunk of this.#decompress()) {
      found = Buffer.concat([found, chunk]);
      if (found.length >= length) break;
    }
    return found.subarray(0, length);
  }

  async #readDecompressed(buffer: Buffer, position: number): Promise<Buffer> {
    this.#decompressed ??= this.#decompress();
    for (;;) {
      const skipped = Math.min(this.#rest.length, Math.max(0, position - this.#position));
      this.#position += skipped;
      this.#rest = this.#rest.subarray(skipped);
      if (this.#rest.length > 0) break;
      const next = await this.#decompressed.next();
      if (next.done === true) break;
      this.#rest = next.value;
    }
    const length = this.#rest.copy(buffer);
    this.#rest = this.#rest.subarray(length);
    this.#position += length;
    return buffer.subarray(0, length);
  }

  /** The decompressed bytes from the start. */
  async *#decompress(): AsyncGenerator<Buffer> {
    try {
      yield* decompressedChunks(Readable.from(this.#compressed()));
    } catch (error) {
      throw new DamagedFileError(error instanceof Error ? error.message : 'it cannot be read');
    }
  }

  /** Not a stream of the handle, which would close it at its end. */
  async *#compressed(): AsyncGenerator<Buffer> {
    for (let position = 0; ; ) {
      const { buffer, bytesRead } = await this.#handle.read(Buffer.alloc(chunkBytes), 0, chunkBytes, position);
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
 * The file of a position under another name: renamed, copied or compressed by rotation. A copy has another inode and is
 * recognized by its first line.
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

/** The file that succeeded this one, before the one that has the name now; undefined if there is none. */
export async function nextRotated(path: string, { node, ...file }: Pick<FollowedFile, 'node'> & { writtenAt: bigint }) {
  for (;;) {
    const files = await rotatedFiles(path);
    const index = files.findIndex(({ device, inode }) => device === node.device && inode === node.inode);
    // A deleted file was older than all files written after it.
    const next = index === -1 ? files.find(({ writtenAt }) => writtenAt > file.writtenAt) : files[index + 1];
    if (next === undefined) return undefined;
    const opened = await FollowedFile.open(next.path);
    if (opened?.node.inode === next.inode && opened.node.device === next.device) return opened;
    // It was rotated again.
    await opened?.close();
  }
}

/** The rotated files of a path, oldest first. Of one being compressed, the original. */
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

/** The number or date in a rotated file's name: `app.ndjson.1`, `app.ndjson-20260115.gz`, `app-2026-01-15.ndjson`. */
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

/** Numbers grow with age, dates fall. Dates have more digits than rotation numbers. */
function compareRotations(a: string, b: string): number {
  const [isNumber, isOtherNumber] = [/^\d{1,5}$/.test(a), /^\d{1,5}$/.test(b)];
  if (isNumber && isOtherNumber) return Number(b) - Number(a);
  if (isNumber !== isOtherNumber) return isNumber ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}
