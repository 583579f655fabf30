import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { forgetAll } from '../../core/forgetting.ts';
import { repeat, rest } from '../../core/repeat.ts';
import { createPool } from '../connections/pool.ts';
import { announcementLife } from './announce-change.ts';
import type { Schema } from './read-schema.ts';
import { hasOwnTransactionIds } from './transaction-ids.ts';

/** Notifies a process when its database is migrated to another schema, or is now a copy on another server. */
export interface SchemaWatch {
  /** Why this process must end; undefined while the database has the schema of this process. */
  readonly reason: string | undefined;
  /** Aborted once there is a reason. */
  readonly signal: AbortSignal;
  /** Whether the schema or the server has changed already. Until then, all answers are correct. */
  readonly late: boolean;
  /** Records that this process no longer uses the database. */
  close(): Promise<void>;
}

/** Milliseconds. */
const checkEvery = 1_000;
const checkLimit = 10_000;

interface Seen {
  newest: number | null;
  hash: string | null;
  announced: boolean;
  /** Whether the database is now a copy from another server. */
  moved: boolean;
  /** Steps of erasures that the installation has seen. */
  erasures: number;
}

/**
 * Records each second that this process uses the database with this schema, and checks that the schema is still the
 * same. Also clears caches of histories after erasures. Uses a connection of its own, so that requests do not delay it.
 * Throws if the first check fails. `read` reads the schema of this process, which depends on the database.
 */
export async function watchSchema(url: string, read: (pool: pg.Pool) => Promise<Schema>): Promise<SchemaWatch> {
  const pool = createPool(url, { applicationName: 'annals schema', maximum: 1, statementLimit: checkLimit });
  const process = randomUUID();
  const controller = new AbortController();
  const stop = new AbortController();
  let reason: string | undefined;
  let late = false;

  let erasures: number | undefined;
  let schema: Schema;

  const check = async () => {
    const seen = await checkOnce(pool, process, schema);
    if (erasures !== undefined && erasures !== seen.erasures) forgetAll();
    erasures = seen.erasures;
    const outdated = seen.newest !== schema.newest || seen.hash !== schema.routinesHash;
    late = outdated || seen.moved;
    if (!late && !seen.announced) return;
    reason ??= describe(seen, schema, outdated);
    controller.abort(reason);
  };

  try {
    schema = await read(pool);
    await check();
  } catch (error) {
    await pool.end();
    throw error;
  }
  // A database that is away says nothing about its schema. Once it is back, a migration must find this process at once.
  const watching = rest(checkEvery, stop.signal).then(() =>
    repeat({ every: checkEvery, maxPause: checkEvery, signal: stop.signal, run: check, onError: () => {} }),
  );
  return {
    signal: controller.signal,
    get reason() {
      return reason;
    },
    get late() {
      return late;
    },
    async close() {
      stop.abort();
      await watching;
      await pool.query('delete from schema_process where process = $1', [process]).catch(() => {});
      await pool.end();
    },
  };
}

async function checkOnce(pool: pg.Pool, process: string, { newest, routinesHash }: Schema): Promise<Seen> {
  const { rows } = await pool.query<Seen>(
    // Without waiting for the disk: a record that a crash loses is repeated a second later.
    `with seen as (
       insert into schema_process (process, newest, routines_hash, seen_at) values ($1, $2, $3, clock_timestamp())
         on conflict (process) do update set seen_at = excluded.seen_at
     ), gone as (
       delete from schema_process where seen_at < clock_timestamp() - interval '1 day'
     )
     select set_config('synchronous_commit', 'off', true),
            (select max(number) from migration) as newest,
            (select hash from routine_set where replaced_at is null) as hash,
            exists (select from schema_change c
                      where (c.newest <> $2 or c.routines_hash <> $3)
                        and c.announced_at > clock_timestamp() - $4 * interval '1 millisecond') as announced,
            not ${hasOwnTransactionIds} as moved,
            coalesce((select max(erasures) from installation), 0)::bigint as erasures`,
    [process, newest, routinesHash, announcementLife],
  );
  const [seen] = rows;
  if (seen === undefined) throw new Error('the database returned no row');
  return seen;
}

function describe({ newest, hash, moved }: Seen, schema: Schema, outdated: boolean): string {
  if (!outdated && moved) {
    return 'The database is a copy from another server now; this process ends, and the next start resets its transaction ids.';
  }
  if (!outdated) return 'Another version of Annals is about to bring the database to its schema; this process ends.';
  const what =
    newest !== schema.newest
      ? `The database is at migration ${newest}, and this version of Annals needs ${schema.newest}`
      : `The routines of the database are those of another version of Annals (${(hash ?? 'none').slice(0, 12)})`;
  return `${what}; this process ends.`;
}
