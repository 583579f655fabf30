import { sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../../postgres/database.ts';
import { type ReadNode, rootOf } from '../tlog/merkle.ts';
import { hashBytes, hashesOf, nodesOfTiles, type TileName, tileWidth } from '../tlog/tiles.ts';
import { hashOfLeaf, leavesOf, readLeaves } from './leaf-store.ts';

/** The hashes of a tile, one after the other; fewer than its width where the tree does not have them. */
export async function readTile(db: Connection, tenant: string, { level, index, width }: TileName): Promise<Buffer> {
  if (level === 0) {
    const first = index * tileWidth + 1;
    const leaves = await readLeaves(db, tenant, first, first + width - 1);
    return Buffer.concat([...leavesOf(leaves)].map(hashOfLeaf));
  }
  const { rows } = await sql<{ hashes: Buffer }>`
    select substring(hashes from 1 for ${width * hashBytes}::integer) as hashes from proof_tile
      where tenant = ${tenant} and level = ${level} and tile = ${index}`.execute(db);
  return rows[0]?.hashes ?? Buffer.alloc(0);
}

/** Reads subtrees of the tree as it was with `size` leaves, and each tile once. */
export function readNodes(db: Connection, tenant: string, size: number): ReadNode {
  const tiles = new Map<string, Promise<Buffer>>();
  return nodesOfTiles(size, (tile) => {
    return tiles.getOrInsertComputed(`${tile.level}/${tile.index}`, () => readTile(db, tenant, tile));
  });
}

/** Appends the roots of blocks of leaves that are complete, from the block `first` on, to the tiles above. */
export async function appendTiles(
  transaction: DatabaseTransaction,
  tenant: string,
  first: number,
  roots: readonly Buffer[],
  level = 1,
): Promise<void> {
  const above: Buffer[] = [];
  for (let at = first; at < first + roots.length; ) {
    const tile = Math.floor(at / tileWidth);
    const next = Math.min((tile + 1) * tileWidth, first + roots.length);
    const known = at - tile * tileWidth;
    const earlier =
      known === 0 ? Buffer.alloc(0) : await readTile(transaction, tenant, { level, index: tile, width: known });
    if (earlier.length !== known * hashBytes) throw new Error(`a tile of ${tenant} is not what its leaves are`);
    const hashes = Buffer.concat([earlier, ...roots.slice(at - first, next - first)]);
    await sql`
      insert into proof_tile (tenant, level, tile, hashes) values (${tenant}, ${level}, ${tile}, ${hashes})
        on conflict (tenant, level, tile) do update set hashes = excluded.hashes`.execute(transaction);
    if (next === (tile + 1) * tileWidth) above.push(rootOf(hashesOf(hashes)));
    at = next;
  }
  if (above.length > 0) await appendTiles(transaction, tenant, Math.floor(first / tileWidth), above, level + 1);
}
