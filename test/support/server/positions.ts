import { expect } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { type PlaceOfPosition, readPlaces } from '../../../src/recording/positions.ts';
import type { TestDatabase } from './database.ts';

/** All places of a tenant behind a position, read in pages that each continue from the last position. */
export async function placesOf(db: Database, tenant: string, after = 0, atOnce = 7_000): Promise<PlaceOfPosition[]> {
  const places: PlaceOfPosition[] = [];
  for (;;) {
    const next = await readPlaces(db, tenant, places.at(-1)?.position ?? after, atOnce);
    if (next.length === 0) return places;
    places.push(...next);
  }
}

/** Expects positions 1, 2, 3 … and each entry of the tenant at one of them. Returns the places. */
export async function expectDense(
  { pool, db }: Pick<TestDatabase, 'pool' | 'db'>,
  tenant: string,
): Promise<PlaceOfPosition[]> {
  const places = await placesOf(db, tenant);
  expect(places.findIndex(({ position }, index) => position !== index + 1)).toBe(-1);
  const { rows } = await pool.query<{ at: number; sequence: number }>(
    'select at, sequence from change_entry where tenant = $1 order by at, sequence',
    [tenant],
  );
  const found = places.filter(({ at }) => at !== -1).map(keyOf);
  expect(found.sort()).toEqual(rows.map(keyOf).sort());
  return places;
}

export function keyOf({ at, sequence }: { at: number; sequence: number }): string {
  return `${at} ${sequence}`;
}
