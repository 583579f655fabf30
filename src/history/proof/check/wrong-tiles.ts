import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';
import { rootOf } from '../tlog/merkle.ts';
import { hashesOf, tileWidth } from '../tlog/tiles.ts';
import { readTreeSize } from '../tree/leaf-store.ts';
import { readTile } from '../tree/tile-store.ts';

/**
 * Tiles whose hash in the tile above does not follow from them or is not there, as `level/index`. A bundle has those of leaves, so these
 * are the tiles of the first level and above.
 */
export async function findWrongTiles(db: Connection, tenant: string): Promise<string[]> {
  const { rows } = await sql<{ level: number; tile: number; hashes: Buffer }>`
    select level, tile, hashes from proof_tile
      where tenant = ${tenant} and level > 1 order by level, tile`.execute(db);
  const wrong = new Set<string>();
  const known = new Set<string>();
  for (const { level, tile, hashes } of rows) {
    for (const [place, hash] of hashesOf(hashes).entries()) {
      const below = { level: level - 1, index: tile * tileWidth + place, width: tileWidth };
      const isRight = rootOf(hashesOf(await readTile(db, tenant, below))).equals(hash);
      (isRight ? known : wrong).add(`${below.level}/${below.index}`);
    }
  }
  const size = await readTreeSize(db, tenant);
  for (let level = 1, width = tileWidth ** 2; width <= size; level += 1, width *= tileWidth) {
    for (let index = 0; index < Math.floor(size / width); index += 1) {
      if (!known.has(`${level}/${index}`)) wrong.add(`${level}/${index}`);
    }
  }
  return [...wrong];
}
