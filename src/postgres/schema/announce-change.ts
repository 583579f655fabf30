import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { OperatorError } from '../../core/errors.ts';
import type { Schema } from './read-schema.ts';

/** Milliseconds after which a process that was not seen counts as dead. */
const processLife = 10_000;
/** Milliseconds after which an announcement expires without renewal. */
export const announcementLife = 30_000;
const renewEvery = 5_000;
const checkEvery = 100;
/** Milliseconds: longer than a process needs to finish its requests. */
const maxWait = 60_000;

/**
 * Runs work that changes the schema: announces the change to the processes that need another schema, waits for their
 * end, and withdraws the announcement afterwards. Throws an OperatorError if some have not ended after a minute.
 */
export async function whileAnnounced(pool: pg.Pool, schema: Schema, work: () => Promise<void>): Promise<void> {
  const target = [schema.newest, schema.routinesHash];
  const announce = async () => {
    await pool.query(
      `insert into schema_change (newest, routines_hash, announced_at) values ($1, $2, clock_timestamp())
         on conflict (singleton) do update set newest = excluded.newest, routines_hash = excluded.routines_hash,
           announced_at = excluded.announced_at`,
      target,
    );
  };
  await announce();
  // A failed renewal is repaired by the next one. If the database is away, the work fails by itself.
  const renewal = setInterval(() => void announce().catch(() => {}), renewEvery);
  try {
    await othersHaveEnded(pool, target);
    await work();
  } finally {
    clearInterval(renewal);
    await pool.query('delete from schema_change where newest = $1 and routines_hash = $2', target).catch(() => {});
  }
}

async function othersHaveEnded(pool: pg.Pool, target: (number | string)[]): Promise<void> {
  for (let waited = 0; ; waited += checkEvery) {
    const { rows } = await pool.query<{ processes: number }>(
      `select count(*) as processes from schema_process
         where (newest <> $1 or routines_hash <> $2) and seen_at > clock_timestamp() - $3 * interval '1 millisecond'`,
      [...target, processLife],
    );
    const processes = rows[0]?.processes ?? 0;
    if (processes === 0) return;
    if (waited >= maxWait) {
      throw new OperatorError(
        `${processes} processes of another version of Annals still use the database after ${maxWait / 1000} s. Stop them, ` +
          'and start this one again',
      );
    }
    await sleep(checkEvery);
  }
}
