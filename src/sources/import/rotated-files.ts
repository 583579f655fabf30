import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { compressed, type FileNode, FollowedFile } from './followed-file.ts';
import type { FilePosition } from './position-store.ts';

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
