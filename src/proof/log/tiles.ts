import { type ReadNode, rootOf } from './merkle.ts';

/**
 * Tiles of a log, as C2SP's tlog-tiles has them: a full tile has 256 hashes, and each hash of a level is the root of a
 * full tile of the level below. Level 0 has the hashes of leaves.
 */

/** The hashes of a full tile. */
export const tileWidth = 256;

/** The bytes of a hash. */
export const hashBytes = 32;

export interface TileName {
  readonly level: number;
  readonly index: number;
  /** How many hashes it has; less than `tileWidth` for a partial one. */
  readonly width: number;
}

/** How many hashes the tree of `size` leaves has in that tile; 0: none. */
export function widthOfTile(level: number, index: number, size: number): number {
  return Math.max(0, Math.min(tileWidth, Math.floor(size / tileWidth ** level) - index * tileWidth));
}

/** The index and the width of a tile as they stand in a path: `x001/x234/067` or `067.p/17`. */
export function tilePath(index: number, width: number): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g) ?? [];
  const path = groups.map((group, place) => (place < groups.length - 1 ? `x${group}` : group)).join('/');
  return width === tileWidth ? path : `${path}.p/${width}`;
}

/** What a path of a tile says, undefined for a path that no tile has. */
export function parseTilePath(path: string): { readonly index: number; readonly width: number } | undefined {
  const match = /^((?:x\d{3}\/){0,4}\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(path);
  if (match?.[1] === undefined) return undefined;
  const index = Number(match[1].replaceAll(/[x/]/g, ''));
  const width = match[2] === undefined ? tileWidth : Number(match[2]);
  const isPath = width <= tileWidth && tilePath(index, width) === path;
  return isPath ? { index, width } : undefined;
}

/** Reads the hashes of a tile, as many as `width` says, one after the other. */
export type ReadTile = (tile: TileName) => Promise<Buffer>;

/**
 * Reads complete subtrees of the tree of `size` leaves out of its tiles. It keeps no tile: hand it a `readTile` that
 * does where several are read.
 */
export function nodesOfTiles(size: number, readTile: ReadTile): ReadNode {
  return async (level, index) => {
    const tileLevel = Math.floor(level / 8);
    const span = 2 ** (level - tileLevel * 8);
    const first = index * span;
    const tile = Math.floor(first / tileWidth);
    const width = widthOfTile(tileLevel, tile, size);
    const offset = first - tile * tileWidth;
    if (offset + span > width) throw new RangeError(`no subtree ${index} of level ${level} in a tree of ${size}`);
    const hashes = await readTile({ level: tileLevel, index: tile, width });
    if (hashes.length !== width * hashBytes)
      throw new RangeError(`a tile of ${width} hashes has ${hashes.length} bytes`);
    return rootOf(hashesOf(hashes.subarray(offset * hashBytes, (offset + span) * hashBytes)));
  };
}

/** The hashes that stand one after the other. */
export function hashesOf(bytes: Buffer): Buffer[] {
  return Array.from({ length: bytes.length / hashBytes }, (_, place) =>
    bytes.subarray(place * hashBytes, (place + 1) * hashBytes),
  );
}
