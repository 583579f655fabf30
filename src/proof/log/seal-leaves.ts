import { randomBytes } from 'node:crypto';
import { threaded } from '../../core/fairness/threads.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { readPlaces } from '../../recording/positions.ts';
import { commitmentOfEntry, receiptLeaf } from './commitment.ts';
import { readCommitted, readReceiptsBetween } from './entry-store.ts';
import { type CommittedEntry, fieldsOf } from './fields.ts';
import { appendLeaves, hashOfLeaf, type Leaves, leafKinds, leavesOf, readLeaves, readTreeSize } from './leaf-store.ts';
import { appendTiles } from './log-store.ts';
import { hashLeaf, rootOf } from './merkle.ts';
import { hashBytes, tileWidth } from './tiles.ts';

/** The leaves of one transaction: four tiles. It ends with a tile where there are more. */
export const maxLeaves = 4 * tileWidth;
/** Bytes of the texts that it reads, one entry apart. */
const maxBytes = 8 * 1024 * 1024;

/**
 * Seals the positions that follow the tree of the tenant: a portion of them, in the transaction of the caller, who has
 * the lock of the proof. Returns how many, and whether there may be more.
 */
export async function sealLeaves(
  transaction: DatabaseTransaction,
  tenant: string,
): Promise<{ sealed: number; more: boolean }> {
  const size = await readTreeSize(transaction, tenant);
  const limit = maxLeaves - (size % tileWidth);
  const places = await readPlaces(transaction, tenant, size, limit);
  if (places.length === 0) return { sealed: 0, more: false };
  const entries = await readCommitted(transaction, tenant, places, maxBytes);
  const receipts = new Map(
    places.some(({ at }) => at === -1)
      ? await readReceiptsBetween(transaction, tenant, size + 1, size + entries.length)
      : [],
  );
  const added = await leavesFor(size + 1, entries, receipts);
  await appendLeaves(transaction, tenant, added);
  await appendFullTiles(transaction, tenant, size, added);
  return { sealed: entries.length, more: entries.length < places.length || places.length === limit };
}

async function leavesFor(
  first: number,
  entries: readonly (CommittedEntry | null)[],
  receipts: ReadonlyMap<number, string>,
): Promise<Leaves> {
  const slice = new TimeSlice();
  const kinds = Buffer.alloc(entries.length, leafKinds.none);
  const commitments = Buffer.alloc(entries.length * hashBytes);
  const seeds = randomBytes(entries.length * hashBytes);
  for (const [index, entry] of entries.entries()) {
    if (slice.isDue) await slice.rest();
    const at = index * hashBytes;
    const receipt = receipts.get(first + index);
    if (entry !== null) {
      kinds[index] = leafKinds.entry;
      const seed = seeds.subarray(at, at + hashBytes);
      const commitment =
        entry.paths.length > maxHere
          ? Buffer.from(await commitmentOfLong(entry, seed.toString('hex')), 'hex')
          : commitmentOfEntry(fieldsOf(entry), seed);
      commitment.copy(commitments, at);
      continue;
    }
    seeds.fill(0, at, at + hashBytes);
    if (receipt === undefined) continue;
    kinds[index] = leafKinds.receipt;
    hashLeaf(receiptLeaf(first + index, receipt)).copy(commitments, at);
  }
  return { first, kinds, commitments, seeds };
}

/** Characters of paths from which on an entry is hashed in a thread. */
const maxHere = 32 * 1024;

/** The commitment to a long entry in hexadecimal, from its seed in hexadecimal. */
export const commitmentOfLong = threaded(
  import.meta.url,
  'commitmentOfLong',
  (entry: CommittedEntry, seed: string): string =>
    commitmentOfEntry(fieldsOf(entry), Buffer.from(seed, 'hex')).toString('hex'),
);

/** Appends the tiles that the added leaves complete to the levels above. */
async function appendFullTiles(
  transaction: DatabaseTransaction,
  tenant: string,
  size: number,
  added: Leaves,
): Promise<void> {
  const firstTile = Math.floor(size / tileWidth);
  const tiles = Math.floor((size + added.kinds.length) / tileWidth) - firstTile;
  if (tiles === 0) return;
  const begin = firstTile * tileWidth;
  const earlier = begin === size ? [] : [...leavesOf(await readLeaves(transaction, tenant, begin + 1, size))];
  const hashes = [...earlier, ...leavesOf(added)].slice(0, tiles * tileWidth).map(hashOfLeaf);
  const roots = Array.from({ length: tiles }, (_, tile) =>
    rootOf(hashes.slice(tile * tileWidth, (tile + 1) * tileWidth)),
  );
  await appendTiles(transaction, tenant, firstTile, roots);
}
