import { sql } from 'kysely';
import type { StopSignal } from '../core/stop-signal.ts';
import type { Database } from '../postgres/database.ts';
import type { FindTenants, TenantWork } from '../postgres/tenants/tenants-with.ts';
import { isLostRace } from '../postgres/transaction.ts';

/** Approximate entries that get positions in one transaction. It limits what the database keeps of them in memory. */
const entriesOfRound = 200_000;

/**
 * Gives positions to all committed changes of a tenant that have none, and returns their number: 0 while another call
 * does so. A call that finds nothing writes nothing.
 */
export async function givePositions(db: Database, tenant: string, round = entriesOfRound): Promise<number> {
  for (let total = 0; ; ) {
    const entries = await giveRound(db, tenant, round);
    total += entries;
    if (entries < round) return total;
  }
}

async function giveRound(db: Database, tenant: string, round: number): Promise<number> {
  try {
    const { rows } = await sql<{ entries: number | null }>`
      select change_position_give(${tenant}, ${round}) as entries`.execute(db);
    return rows[0]?.entries ?? 0;
  } catch (error) {
    if (isLostRace(error)) return 0;
    throw error;
  }
}

interface GivePositionsOptions {
  signal: StopSignal;
  findTenants: FindTenants;
  /** Marks tenants with changes that have no position. */
  work: TenantWork;
  onError: (error: unknown) => void;
}

/** Gives positions to the changes of all tenants. The next call retries a tenant that failed. */
export async function givePositionsOfTenants(
  db: Database,
  { signal, findTenants, work, onError }: GivePositionsOptions,
): Promise<void> {
  for (const tenant of await findTenants(work)) {
    if (signal.aborted) return;
    try {
      await givePositions(db, tenant);
    } catch (error) {
      onError(error);
    }
  }
}

/**
 * SQL, to be joined laterally: the entries of a row `p` of change_position, packed or not (0001-baseline.sql has the
 * layout), as columns `at` (-1: none), `sequence` and a 1-based `number`. A row has as many positions as fingerprints.
 */
export const entriesOfRow = sql.raw<unknown>(`(
  select plain.at, plain.sequence, plain.number
    from unnest(p.ats, p.sequences) with ordinality as plain (at, sequence, number)
  union all
  select case when packed.high < 0 then -1 else p.oldest + packed.high * 4294967296 + packed.low end,
         case when packed.high < 0 then -1 else p.sequence_base + packed.number + packed.distance end, packed.number
    from unnest(p.at_lows, p.at_highs, p.sequence_offsets) with ordinality as packed (low, high, distance, number)
)`);

/** A position of a tenant, 0 before all. */
export interface Position {
  readonly position: number;
  /** A random number drawn for the position. If it differs, the database was restored. */
  readonly fingerprint: number;
}

export interface PlaceOfPosition extends Position {
  /** The time of the change, in milliseconds; -1 if the position has no entry. */
  readonly at: number;
  readonly sequence: number;
  /** When it was recorded, in milliseconds; the time of the change for entries older than positions. */
  readonly recorded: number;
}

/** Maximum positions that one call reads. */
export const maxPlaces = 10_000;

const beforeAll: Position = { position: 0, fingerprint: 0 };

/** The last position of a tenant. What was committed before may have no position yet: see `givePositions`. */
export async function lastPosition(db: Database, tenant: string): Promise<Position> {
  const { rows } = await sql<Position>`
    select first + cardinality(fingerprints) - 1 as position, fingerprints[cardinality(fingerprints)] as fingerprint
      from change_position where tenant = ${tenant} order by first desc limit 1`.execute(db);
  return rows[0] ?? beforeAll;
}

/** The fingerprint of a position; undefined if the tenant has no such position. */
export async function fingerprintAt(db: Database, tenant: string, position: number): Promise<number | undefined> {
  if (position === 0) return beforeAll.fingerprint;
  const { rows } = await sql<{ fingerprint: number | null }>`
    select p.fingerprints[${position}::bigint - p.first + 1] as fingerprint
      from (
        select first, fingerprints from change_position
          where tenant = ${tenant} and first <= ${position}::bigint order by first desc limit 1
      ) p`.execute(db);
  return rows[0]?.fingerprint ?? undefined;
}

/**
 * The position before the first entry that was recorded at that time (milliseconds) or later; the last position if
 * there is none. Entries of overlapping transactions may be in either order, so a few behind it may be older.
 */
export async function positionBefore(db: Database, tenant: string, recorded: number): Promise<Position> {
  const { rows } = await sql<{ position: number }>`
    select p.first + entry.place - 2 as position
      from (
        select first, recorded from change_position
          where tenant = ${tenant} and ${recorded}::bigint <= any (recorded) order by first limit 1
      ) p
      cross join lateral unnest(p.recorded) with ordinality as entry (recorded, place)
      where entry.recorded >= ${recorded}::bigint order by entry.place limit 1`.execute(db);
  const position = rows[0]?.position;
  const fingerprint = position === undefined ? undefined : await fingerprintAt(db, tenant, position);
  if (position === undefined || fingerprint === undefined) return await lastPosition(db, tenant);
  return { position, fingerprint };
}

/**
 * The first position whose entry is not older than the horizon (milliseconds): retention drops only entries before it,
 * though not all of them. Undefined if there is none.
 */
export async function firstKept(db: Database, tenant: string, horizon: number): Promise<number | undefined> {
  const { rows } = await sql<{ position: number }>`
    select p.first + entry.number - 1 as position
      from (
        select * from change_position
          where tenant = ${tenant} and newest >= ${horizon}::bigint
          order by first limit 1
      ) p
      cross join lateral ${entriesOfRow} as entry
      where entry.at >= ${horizon}::bigint order by entry.number limit 1`.execute(db);
  return rows[0]?.position;
}

/** The places behind a position, in order, without a gap; fewer than `limit` if no more exist now. */
export async function readPlaces(
  db: Database,
  tenant: string,
  after: number,
  limit = maxPlaces,
): Promise<PlaceOfPosition[]> {
  const last = after + Math.min(limit, maxPlaces);
  // One row has many positions as JSON. With one row for each, parsing would block the event loop.
  const { rows } = await sql<PositionsRow>`
    select p.first, p.low, p.oldest, p.sequence_base as base, array_to_json(p.ats[p.low:p.high]) as ats,
           array_to_json(p.sequences[p.low:p.high]) as sequences, array_to_json(p.at_lows[p.low:p.high]) as lows,
           array_to_json(p.at_highs[p.low:p.high]) as highs, array_to_json(p.sequence_offsets[p.low:p.high]) as offsets,
           array_to_json(p.recorded[p.low:p.high]) as recorded, array_to_json(p.fingerprints[p.low:p.high]) as fingerprints
      from (
        select *, greatest(${after}::bigint - first + 2, 1)::integer as low,
               least(${last}::bigint - first + 1, cardinality(fingerprints))::integer as high
          from change_position
          where tenant = ${tenant} and first <= ${last}::bigint
            and first >= coalesce((
              select first from change_position
                where tenant = ${tenant} and first <= ${after}::bigint + 1 order by first desc limit 1), 1)
      ) p
      where p.low <= p.high
      order by p.first`.execute(db);
  return rows.flatMap((row) =>
    row.fingerprints.map((fingerprint, index) => ({
      position: row.first + row.low - 1 + index,
      ...entryOf(row, index),
      recorded: row.recorded[index] ?? 0,
      fingerprint,
    })),
  );
}

/** Positions of a row from its number `low` on. The baseline of the migrations has the layout. */
interface PositionsRow {
  readonly first: number;
  readonly low: number;
  readonly oldest: number;
  readonly ats: readonly number[];
  readonly sequences: readonly number[];
  /** Null if the row is not packed, like the other three. */
  readonly base: number | null;
  readonly lows: readonly number[] | null;
  readonly highs: readonly number[] | null;
  readonly offsets: readonly number[] | null;
  readonly recorded: readonly number[];
  readonly fingerprints: readonly number[];
}

function entryOf({ low, oldest, ats, sequences, base, lows, highs, offsets }: PositionsRow, index: number) {
  if (ats.length > 0) return { at: ats[index] ?? -1, sequence: sequences[index] ?? 0 };
  const high = highs?.[index] ?? -1;
  if (high < 0) return { at: -1, sequence: -1 };
  return {
    at: oldest + high * 2 ** 32 + (lows?.[index] ?? 0),
    sequence: (base ?? 0) + low + index + (offsets?.[index] ?? 0),
  };
}
