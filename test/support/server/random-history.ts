import { randomBytes } from 'node:crypto';
import { expect } from 'vitest';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import type { Random } from '../oracle/random.ts';
import type { Entry } from '../oracle/selections.ts';
import type { TestDatabase } from './database.ts';

/** The clock of these histories. */
export const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const second = 1_000;
const minute = 60_000;
const hour = 3_600_000;
export const day = 86_400_000;

/** Small numbers much more often than large ones. */
function skewed(random: Random, limit: number): number {
  return Math.floor(random.next() ** 4 * limit);
}

export const entities = ['order', 'customer', 'product', 'site'];
export const types = ['create', 'update', 'delete'] as const;

function randomTime(random: Random): number {
  const crowdedHour = now - 3 * day;
  switch (random.below(8)) {
    case 0:
      return now - random.below(40 * day);
    case 1:
      return crowdedHour + random.below(hour);
    case 2:
      return crowdedHour + 17 * minute + random.below(minute);
    case 3:
      return crowdedHour + 17 * minute + 5 * second + random.below(second);
    case 4:
      return crowdedHour + 17 * minute + 5 * second + 77;
    case 5:
      return now - random.below(3) * day - random.below(50);
    case 6:
      return Math.floor(now / day) * day - random.below(60) * day;
    default:
      return random.pick([0, 500 * day, 9_000 * day, Date.UTC(2100, 11, 31)]) + random.below(hour);
  }
}

/** A change at a random time, many of them in one crowded hour, minute, second and millisecond. */
export function randomChange(random: Random, actors: number): Change {
  const entity = entities[skewed(random, entities.length)] ?? 'order';
  return {
    identity: randomBytes(16),
    at: randomTime(random),
    type: types[skewed(random, 3)] ?? 'update',
    entity,
    entityId: String(random.below(300)),
    actor: `actor ${skewed(random, actors)}`,
    related: random.below(6) === 0 ? [{ entity: 'group', entityId: String(random.below(5)) }] : [],
    paths: '{}',
  };
}

/** Records so many random changes. Their actors are `actor 0`, which most have, to `actor (actors - 1)`. */
export async function recordRandom(
  { db }: TestDatabase,
  tenant: string,
  { random, count, actors }: { random: Random; count: number; actors: number },
): Promise<void> {
  const changes = Array.from({ length: count }, () => randomChange(random, actors));
  const outcomes = await createRecorder(db, tenant, () => now)(changes);
  expect(new Set(outcomes)).toEqual(new Set(['recorded']));
}

/** All entries, the newest first. */
export async function readEntries({ pool }: TestDatabase, tenant: string): Promise<Entry[]> {
  const { rows } = await pool.query<Entry>(
    'select at, sequence, kind, actor from change_entry where tenant = $1 order by at desc, sequence desc',
    [tenant],
  );
  return rows;
}

/** The first row of what a routine returns. */
export async function firstRow<Row>({ pool }: TestDatabase, call: string, values: unknown[]): Promise<Row> {
  const { rows } = await pool.query(`select * from ${call}`, values);
  return rows[0] as Row;
}
