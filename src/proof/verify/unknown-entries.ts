import { sql } from 'kysely';
import type { Connection } from '../../postgres/database.ts';
import { entriesOfRow } from '../../recording/positions.ts';
import { leafKinds, readTreeSize } from '../log/leaf-store.ts';
import { readTile } from '../log/log-store.ts';
import { rootOf } from '../log/merkle.ts';
import { hashesOf, tileWidth } from '../log/tiles.ts';

/** An entry that no position names, or several do, and that does not wait for one: it was not recorded by Annals. */
export interface UnknownEntry {
  readonly entity: string;
  readonly entityId: string;
  /** Milliseconds. */
  readonly at: number;
}

interface Place {
  readonly at: number;
  readonly sequence: number;
}

/** The entries that one statement looks at. */
const portion = 50_000;

interface Portion extends Place {
  readonly entries: readonly UnknownEntry[];
}

/**
 * Finds entries that somebody put into the history without recording them, `limit` at most. Each statement has its own
 * snapshot, in which an entry has its position or a delta that waits for one.
 */
export async function findUnknownEntries(db: Connection, tenant: string, limit: number): Promise<UnknownEntry[]> {
  const found: UnknownEntry[] = [];
  for (
    let after: { at: number; sequence: number } | undefined = { at: -(2 ** 53), sequence: 0 };
    after !== undefined;
  ) {
    const row: Portion | undefined = await readPortion(db, tenant, after, limit);
    found.push(...(row?.entries ?? []));
    after = row === undefined || found.length >= limit ? undefined : { at: row.at, sequence: row.sequence };
  }
  found.push(...(await readMisplaced(db, tenant, limit)));
  return found.slice(0, limit);
}

/** Entries at positions that were sealed as those of a receipt, or as gone. */
async function readMisplaced(db: Connection, tenant: string, limit: number): Promise<UnknownEntry[]> {
  const { rows } = await sql<UnknownEntry>`
    with other as materialized (
      select l.first + leaf.place as position, p.first
        from proof_leaf l
        cross join lateral generate_series(0, octet_length(l.kinds) - 1) as leaf (place)
        cross join lateral (
          select c.first from change_position c
            where c.tenant = ${tenant} and c.first <= l.first + leaf.place order by c.first desc limit 1
        ) p
        where l.tenant = ${tenant} and get_byte(l.kinds, leaf.place) <> ${leafKinds.entry}::integer
    ), placed as materialized (
      select p.first + entry.number - 1 as position, entry.at, entry.sequence
        from change_position p cross join lateral ${entriesOfRow} as entry
        where p.tenant = ${tenant} and p.first in (select first from other) and entry.at >= 0
    )
    select coalesce(k.entity, '') as entity, e.entity_id as "entityId", e.at
      from other
      join placed on placed.position = other.position
      join change_entry e on e.tenant = ${tenant} and e.at = placed.at and e.sequence = placed.sequence
      left join change_kind k on k.tenant = ${tenant} and k.kind = e.kind
      limit ${limit}::integer`.execute(db);
  return rows;
}

/**
 * The unknown entries behind a place, and the last place that was looked at; undefined where there is none behind it.
 */
async function readPortion(
  db: Connection,
  tenant: string,
  { at, sequence }: Place,
  limit: number,
): Promise<Portion | undefined> {
  const { rows } = await sql<Portion>`
    with next as materialized (
      select e.at, e.sequence, e.kind, e.entity_id from change_entry e
        where e.tenant = ${tenant} and (e.at, e.sequence) > (${at}::bigint, ${sequence}::bigint)
        order by e.at, e.sequence limit ${portion}
    ), bounds as materialized (
      select min(next.at) as low, max(next.at) as high from next
    ), placed as materialized (
      select entry.at, entry.sequence
        from bounds, change_position p
        cross join lateral ${entriesOfRow} as entry
        where p.tenant = ${tenant} and p.oldest <= bounds.high and p.newest >= bounds.low
          and entry.at between bounds.low and bounds.high
      union all
      select entry.at, entry.sequence
        from change_delta d
        cross join lateral unnest(d.ats, d.sequences) as entry (at, sequence)
        where d.tenant = ${tenant} and d.position is null
    ), known as materialized (
      select at, sequence from placed group by at, sequence having count(*) = 1
    ), unknown as (
      select k.entity, next.entity_id as "entityId", next.at
        from next
        left join known on known.at = next.at and known.sequence = next.sequence
        left join change_kind k on k.tenant = ${tenant} and k.kind = next.kind
        where known.sequence is null order by next.at limit ${limit}
    )
    select last.at, last.sequence,
           (select coalesce(json_agg(json_build_object('entity', coalesce(u.entity, ''), 'entityId', u."entityId", 'at', u.at)), '[]')
              from unknown u) as entries
      from (select at, sequence from next order by at desc, sequence desc limit 1) last`.execute(db);
  return rows[0];
}

/**
 * The first positions of rows of places with a gap or something else before them, or with another size or other bounds
 * of time than those of their entries; and the end of all where more is sealed. Such rows give a position twice, or
 * hide one from an erasure.
 */
export async function findWrongPlaces(db: Connection, tenant: string, limit: number): Promise<number[]> {
  const { rows } = await sql<{ first: number }>`
    with place as (
      select p.first, p.first + cardinality(p.fingerprints) as next,
             lag(p.first + cardinality(p.fingerprints), 1, 1::bigint) over (order by p.first) as expected,
             cardinality(p.fingerprints) = cardinality(p.recorded)
               and cardinality(p.fingerprints) = all (case
                 when cardinality(p.ats) > 0 or p.at_lows is null then array[cardinality(p.ats), cardinality(p.sequences)]
                 else array[cardinality(p.at_lows), cardinality(p.at_highs), cardinality(p.sequence_offsets)] end)
               and p.oldest = bounds.oldest and p.newest = bounds.newest as is_right
        from change_position p
        cross join lateral (
          select coalesce(min(entry.at) filter (where entry.at >= 0), -1) as oldest, max(entry.at) as newest
            from ${entriesOfRow} as entry
        ) bounds
        where p.tenant = ${tenant}
    )
    select place.first from place where place.first <> place.expected or place.is_right is distinct from true
    union all
    select coalesce(max(place.next), 1) as first from place
      having coalesce(max(place.next), 1) <= (
        select max(l.first + octet_length(l.kinds) - 1) from proof_leaf l where l.tenant = ${tenant})
    order by first limit ${limit}::integer`.execute(db);
  return rows.map(({ first }) => first);
}

/**
 * Tiles whose hash in the tile above does not follow from them or is not there, as `level/index`. A bundle has those of
 * leaves, so these are the tiles of the first level and above.
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
