import type { Database } from '../../postgres/database.ts';
import { readReceiptsBetween } from './entry-store.ts';
import { leavesOf, readLeaves, textOfLeaf } from './leaf-store.ts';
import { readTile } from './log-store.ts';
import { hashBytes, type TileName, tileWidth, widthOfTile } from './tiles.ts';

/** The hashes of a tile that the tree of `size` leaves has, at least that wide; undefined for any other. */
export async function readPublishedTile(
  db: Database,
  tenant: string,
  size: number,
  tile: TileName,
): Promise<Buffer | undefined> {
  if (tile.width > widthOfTile(tile.level, tile.index, size)) return undefined;
  const bytes = await readTile(db, tenant, tile);
  if (bytes.length !== tile.width * hashBytes) throw new Error(`a tile of ${tenant} has too few hashes`);
  return bytes;
}

/** The leaves of a tile of level 0, each after its length in two bytes. */
export async function readPublishedEntries(
  db: Database,
  tenant: string,
  size: number,
  { index, width }: Omit<TileName, 'level'>,
): Promise<Buffer | undefined> {
  if (width > widthOfTile(0, index, size)) return undefined;
  const first = index * tileWidth + 1;
  const last = first + width - 1;
  const leaves = [...leavesOf(await readLeaves(db, tenant, first, last))];
  if (leaves.length !== width) throw new Error(`a tile of ${tenant} has too few leaves`);
  const receipts = new Map(
    leaves.some(({ kind }) => kind === 'receipt') ? await readReceiptsBetween(db, tenant, first, last) : [],
  );
  return Buffer.concat(
    leaves.flatMap((leaf) => {
      const text = Buffer.from(textOfLeaf(leaf, receipts));
      const length = Buffer.alloc(2);
      length.writeUInt16BE(text.length);
      return [length, text];
    }),
  );
}
