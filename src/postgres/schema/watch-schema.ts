import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { forgetAll } from '../../core/forgetting.ts';
import { repeat, rest } from '../../core/repeat.ts';
import { createPool } from '../connections/pool.ts';
import { announcementLife } from './announce-change.ts';
import type { Schema } from './read-schema.ts';
import { hasOwnTransactionIds } from './transaction-ids.ts';

/**
 * Notifies a process when its database is migrated to a schema that the process does not know, or when its URL leads to a
 * copy of the database on another server.
 */
export interface SchemaWatch {
  /** Why this process must end; undefined while the database has the schema of this process. */
  readonly reason: string | undefined;
  /** Aborted once there is a reason. */
  readonly signal: AbortSignal;
  /** Whether the schema or the server has changed already. Until then, all answers are correct. */
  readonly late: boolean;
  /** Records that this process does not use the database any more. */
  close(): Promise<void>;
}

const lookEvery = 1_000;
/** Milliseconds that a look may take. */
const lookLimit = 10_000;

interface Seen {
  newest: number | null;
  hash: string | null;
  announced: boolean;
  /** The database is a copy from another server meanwhile. */
  moved: boolean;
  /** Steps of erasures that the installation has seen. */
  erasures: number;
}

/**
 * Records each second that this process uses the database with this schema, and checks whether the schema is still the
 * same. Besides, the process forgets what it keeps in memory of histories where something was erased. It has a separate connection, so that it does not wait behind requests. Throws if the first check fails.
 * `read` reads the schema of this process, which depends on the database.
 */
export async function watchSchema(url: string, read: (pool: pg.Pool) => Promise<Schema>): Promise<SchemaWatch> {
  const pool = createPool(url, { applicationName: 'annals schema', maximum: 1, statementLimit: lookLimit });
  const process = randomUUID();
  const controller = new AbortController();
  const stop = new AbortController();
  let reason: string | undefined;
  let late = false;

  let erasures: number | undefined;
  let schema: Schema;

  const look = async () => {
    const seen = await lookOnce(pool, process, schema);
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
    await look();
  } catch (error) {
    await pool.end();
    throw error;
  }
  // A database that is away gives no information about its schema. Once it is back, a migration must find this process at once.
  const watching = rest(lookEvery, stop.signal).then(() =>
    repeat({ every: lookEvery, maxPause: lookEvery, signal: stop.signal, run: look, onError: () => {} }),
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

async function lookOnce(pool: pg.Pool, process: string, { newest, routinesHash }: Schema): Promise<Seen> {
  const { rows } = await pool.query<Seen>(
    // No wait for the disk: if a crash of the server loses the record, the next one follows a second later.
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
