import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';
import { rootOf } from '../tlog/merkle.ts';
import { hashesOf, tileWidth } from '../tlog/tiles.ts';
import { readTile } from '../tree/tile-store.ts';

/** Tiles of the second level and above that do not follow from those below them, as `level/index`. A bundle has those of the first. */
export async function findWrongTiles(db: Connection, tenant: string): Promise<string[]> {
  const { rows } = await sql<{ level: number; tile: number; hashes: Buffer }>`
    select level, tile, hashes from proof_tile
      where tenant = ${tenant} and level > 1 order by level, tile`.execute(db);
  const wrong: string[] = [];
  for (const { level, tile, hashes } of rows) {
    for (const [place, hash] of hashesOf(hashes).entries()) {
      const below = { level: level - 1, index: tile * tileWidth + place, width: tileWidth };
      const isRight = rootOf(hashesOf(await readTile(db, tenant, below))).equals(hash);
      if (!isRight) wrong.push(`${below.level}/${below.index}`);
    }
  }
  return wrong;
}
