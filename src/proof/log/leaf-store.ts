import { sql } from 'kysely';
import { int8Array } from '../../postgres/binary-arrays.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { entryLeaf, noneLeaf, receiptLeaf } from './commitment.ts';
import { hashLeaf } from './merkle.ts';
import { hashBytes, tileWidth } from './tiles.ts';

/** The byte that says what a leaf is of. */
export const leafKinds = { entry: 1, receipt: 2, none: 3 } as const;

/** Leaves of positions that follow each other, in columns. */
export interface Leaves {
  /** The position of the first one. */
  readonly first: number;
  /** A byte each. */
  readonly kinds: Buffer;
  /** 32 bytes each: the commitment to an entry, the hash of the leaf of a receipt, else zeros. */
  readonly commitments: Buffer;
  /** 32 bytes each: the seed of an entry, else zeros. */
  readonly seeds: Buffer;
}

/** One leaf. */
export interface Leaf {
  readonly position: number;
  readonly kind: keyof typeof leafKinds;
  readonly commitment: Buffer;
  /** Undefined where there is none, or not any more. */
  readonly seed: Buffer | undefined;
}

/**
 * A row ends where a block of so many positions ends. So each leaf is written three times at most, and few rows are
 * left.
 */
const mergedBlock = 16;

/** How many leaves the tree of the tenant has. */
export async function readTreeSize(db: Connection, tenant: string): Promise<number> {
  const { rows } = await sql<{ size: number }>`
    select first + octet_length(kinds) - 1 as size from proof_leaf
      where tenant = ${tenant} order by first desc limit 1`.execute(db);
  return rows[0]?.size ?? 0;
}

/** The leaves of some positions, both included. Fewer where the tree ends before, or where somebody removed some. */
export async function readLeaves(db: Connection, tenant: string, from: number, to: number): Promise<Leaves> {
  const rows = await readRows(db, tenant, from, to);
  const parts: Leaves[] = [];
  let next = from;
  for (const row of rows) {
    if (row.first > next) break;
    const begin = next - row.first;
    const end = Math.min(row.kinds.length, to - row.first + 1);
    if (begin < end) parts.push(cut(row, begin, end));
    next = Math.max(next, row.first + end);
  }
  return joined(from, parts);
}

/** Each leaf by itself. */
export function* leavesOf({ first, kinds, commitments, seeds }: Leaves): Generator<Leaf> {
  for (const [index, byte] of kinds.entries()) {
    const at = index * hashBytes;
    const seed = seeds.subarray(at, at + hashBytes);
    yield {
      position: first + index,
      kind: kindOf(byte),
      commitment: commitments.subarray(at, at + hashBytes),
      seed: seed.some((one) => one !== 0) ? seed : undefined,
    };
  }
}

/** The hash of a leaf. */
export function hashOfLeaf({ position, kind, commitment }: Omit<Leaf, 'seed'>): Buffer {
  if (kind === 'receipt') return commitment;
  return hashLeaf(kind === 'entry' ? entryLeaf(position, commitment) : noneLeaf(position));
}

/** The text of a leaf; `receipts` has the bodies by position. Throws a RangeError for a receipt that is not there. */
export function textOfLeaf({ position, kind, commitment }: Omit<Leaf, 'seed'>, receipts: ReadonlyMap<number, string>) {
  if (kind === 'entry') return entryLeaf(position, commitment);
  if (kind === 'none') return noneLeaf(position);
  const body = receipts.get(position);
  if (body === undefined) throw new RangeError(`there is no receipt at position ${position}`);
  return receiptLeaf(position, body);
}

/** Appends leaves to the tree. Throws where the tree has grown in the meantime. */
export async function appendLeaves(transaction: DatabaseTransaction, tenant: string, added: Leaves): Promise<void> {
  const size = added.first - 1;
  const end = size + added.kinds.length;
  const block = [tileWidth, mergedBlock].find((width) => Math.floor(end / width) > Math.floor(size / width)) ?? 1;
  const after = Math.floor(size / block) * block;
  const rows = after === size ? [] : await readRows(transaction, tenant, after + 1, size);
  // One that began in the block before stays as it is.
  const earlier = rows.filter((row) => row.first > after);
  const begin = (earlier[0]?.first ?? added.first) - 1;
  const all = joined(begin + 1, [...earlier, added]);
  if (earlier.length > 0) {
    const { numAffectedRows = 0n } = await sql`
      delete from proof_leaf where tenant = ${tenant} and first > ${begin} and first <= ${size}`.execute(transaction);
    if (numAffectedRows !== BigInt(earlier.length)) throw new Error(`another process seals ${tenant}`);
  }
  for (let at = begin; at < end; ) {
    const next = Math.min((Math.floor(at / tileWidth) + 1) * tileWidth, end);
    const row = cut(all, at - begin, next - begin);
    await sql`
      insert into proof_leaf (tenant, first, kinds, commitments, seeds)
        values (${tenant}, ${row.first}, ${row.kinds}, ${row.commitments}, ${row.seeds})`.execute(transaction);
    at = next;
  }
}

/**
 * Forgets the seeds of entries, so that their salts cannot be derived any more. The caller holds the lock of the proof.
 */
export async function forgetSeeds(
  transaction: DatabaseTransaction,
  tenant: string,
  positions: readonly number[],
): Promise<void> {
  const { rows } = await sql<{ first: number; seeds: Buffer }>`
    select distinct l.first, l.seeds
      from unnest(${int8Array(positions)}::bigint[]) as requested (position)
      cross join lateral (
        select first, seeds from proof_leaf
          where tenant = ${tenant} and first <= requested.position order by first desc limit 1
      ) l`.execute(transaction);
  for (const { first, seeds } of rows) {
    const left = Buffer.from(seeds);
    for (const position of positions) {
      const at = (position - first) * hashBytes;
      if (at >= 0 && at < left.length) left.fill(0, at, at + hashBytes);
    }
    await sql`update proof_leaf set seeds = ${left} where tenant = ${tenant} and first = ${first}`.execute(transaction);
  }
}

/** The rows with leaves of these positions, in order. */
async function readRows(db: Connection, tenant: string, from: number, to: number): Promise<Leaves[]> {
  // A row ends with its block.
  const before = Math.floor((from - 1) / tileWidth) * tileWidth;
  const { rows } = await sql<Leaves>`
    select first, kinds, commitments, seeds from proof_leaf
      where tenant = ${tenant} and first > ${before}::bigint and first <= ${to}::bigint order by first`.execute(db);
  return rows.filter((row) => row.first + row.kinds.length > from);
}

function cut({ first, kinds, commitments, seeds }: Leaves, begin: number, end: number): Leaves {
  return {
    first: first + begin,
    kinds: kinds.subarray(begin, end),
    commitments: commitments.subarray(begin * hashBytes, end * hashBytes),
    seeds: seeds.subarray(begin * hashBytes, end * hashBytes),
  };
}

function joined(first: number, parts: readonly Leaves[]): Leaves {
  return {
    first,
    kinds: Buffer.concat(parts.map(({ kinds }) => kinds)),
    commitments: Buffer.concat(parts.map(({ commitments }) => commitments)),
    seeds: Buffer.concat(parts.map(({ seeds }) => seeds)),
  };
}

function kindOf(byte: number): keyof typeof leafKinds {
  if (byte === leafKinds.entry) return 'entry';
  return byte === leafKinds.receipt ? 'receipt' : 'none';
}
