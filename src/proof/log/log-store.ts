import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { hashOfLeaf, leavesOf, readLeaves } from './leaf-store.ts';
import { type ReadNode, rootOf } from './merkle.ts';
import { hashBytes, hashesOf, nodesOfTiles, type TileName, tileWidth } from './tiles.ts';

/** A name and a key under which the tree of a tenant is signed. */
export interface Log {
  readonly origin: string;
  readonly vkey: string;
  /** The position of the receipt with which it begins; null: nothing is sealed yet. */
  readonly receipt: number | null;
  /** The leaves of its last checkpoint. */
  readonly size: number;
  /** The note of its last checkpoint. */
  readonly checkpoint: string | null;
  readonly signedAt: Date | null;
  /** Whether the next checkpoint is due, also where the last one is of a moment that has not been. */
  readonly isDue: boolean;
  /** When the history was checked against it last, and whether it was what was sealed; null: never. */
  readonly checkedAt: Date | null;
  readonly checkRight: boolean | null;
}

/**
 * From one checkpoint to the next. A look every five seconds finds that it is due: so what is recorded has one within a
 * minute.
 */
export const betweenCheckpoints = '50 s';

/** Tenants with a log that is signed. */
export const tenantsWithLog: TenantWork = { table: 'proof_log', condition: 'ended is null' };

/** The log of the tenant that is signed; undefined where there is none. */
export async function readLog(db: Connection, tenant: string): Promise<Log | undefined> {
  const { rows } = await sql<Log>`
    select origin, vkey, receipt, size, checkpoint, signed_at as "signedAt",
           coalesce(signed_at not between statement_timestamp() - ${betweenCheckpoints}::interval and statement_timestamp(), true) as "isDue",
           checked_at as "checkedAt", check_right as "checkRight"
      from proof_log where tenant = ${tenant} and ended is null`.execute(db);
  return rows[0];
}

/** Begins a log in the place of the one that is signed now, if there is one. */
export async function storeLog(
  db: Connection,
  tenant: string,
  { origin, vkey, receipt }: Pick<Log, 'origin' | 'vkey' | 'receipt'>,
): Promise<void> {
  await sql`update proof_log set ended = statement_timestamp() where tenant = ${tenant} and ended is null`.execute(db);
  await sql`insert into proof_log (tenant, origin, vkey, receipt)
    values (${tenant}, ${origin}, ${vkey}, ${receipt}::bigint)`.execute(db);
}

/** Stores the receipt of a log that was requested before anything was sealed. */
export async function storeFirstReceipt(
  db: Connection,
  tenant: string,
  origin: string,
  receipt: number,
): Promise<void> {
  await sql`update proof_log set receipt = ${receipt} where tenant = ${tenant} and origin = ${origin}`.execute(db);
}

/** Publishes the newest checkpoint of a log. */
export async function storeCheckpoint(
  db: Connection,
  tenant: string,
  origin: string,
  { size, checkpoint }: { size: number; checkpoint: string },
): Promise<void> {
  await sql`update proof_log set size = ${size}, checkpoint = ${checkpoint}, signed_at = statement_timestamp()
    where tenant = ${tenant} and origin = ${origin}`.execute(db);
}

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

// What seals a tenant and what erases of it exclude each other, and so do two processes that seal it. The lock ends
// with the transaction. In a cluster all ask the coordinator for it.

/** Waits for the lock of the tenant's proof; held until the transaction ends. */
export async function lockProof(transaction: DatabaseTransaction, tenant: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`proof ${tenant}`}, 0))`.execute(transaction);
}

/** Takes the lock of the tenant's proof if it is free; held until the transaction ends. */
export async function tryLockProof(transaction: DatabaseTransaction, tenant: string): Promise<boolean> {
  const { rows } = await sql<{ taken: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`proof ${tenant}`}, 0)) as taken`.execute(transaction);
  return rows[0]?.taken === true;
}

/** The log with its newest checkpoint. Throws resource_not_found where there is none yet. */
export async function signedLog(db: Connection, tenant: string): Promise<Log & { checkpoint: string }> {
  const log = await readLog(db, tenant);
  if (log?.checkpoint == null) {
    throw new AnnalsError(
      'resource_not_found',
      'No checkpoint of this history has been signed. Annals seals histories where ANNALS_PROOF_KEY_FILE is set, and signs them about every minute.',
    );
  }
  return { ...log, checkpoint: log.checkpoint };
}
