import { sql } from 'kysely';
import type pg from 'pg';
import { readDeliveryFigures, readDeliveryLag } from '../delivery/dispatch/delivery-figures.ts';
import type { JobType } from '../desk/jobs/job.ts';
import { type DatabaseFigure, measureDatabase } from '../metrics/database-figures.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { createSideConnection } from '../postgres/connections/side-connection.ts';
import type { Database } from '../postgres/database.ts';
import { readDatabaseSizes } from '../postgres/database-sizes.ts';
import { readEmbeddedDisk } from '../postgres/embedded/home.ts';
import { beginSource, connectSource, type Source } from '../postgres/source/source.ts';
import { WriteProbe } from '../postgres/write-probe.ts';
import { readSealingLag } from '../proof/log/seal-tenants.ts';
import { countAltered, countSetBack } from '../proof/verify/check-store.ts';
import { readPositionAge } from '../sources/capture/position.ts';
import type { CaptureFigures } from '../sources/capture/slot.ts';
import { readOutboxFigures } from '../sources/outbox/outbox-rows.ts';

/** Maximum milliseconds of a figure's query. */
const statementLimit = 1_500;

/**
 * Measures what only the database knows, over all tenants and processes; of several processes on a port, one does so.
 * Returns a function that closes the connection. `dataDir`: the folder of the embedded database.
 */
export function measureInstallation(
  metrics: Metrics,
  databaseUrl: string,
  dataDir: string | undefined,
): () => Promise<void> {
  return measureBeside(metrics, databaseUrl, (db) => {
    const writes = new WriteProbe({ run: (statements) => sql.raw(statements).execute(db) });
    const age = new AgeOfOldest();
    return [
      {
        names: ['annals_database_writable'],
        read: async (set) => set('annals_database_writable', {}, (await writes.takesWrites()) ? 1 : 0),
      },
      {
        names: ['annals_database_size_bytes', 'annals_database_log_bytes'],
        async read(set) {
          const { database, log } = await readDatabaseSizes(db);
          set('annals_database_size_bytes', {}, database);
          if (log !== undefined) set('annals_database_log_bytes', {}, log);
        },
      },
      ...(dataDir === undefined ? [] : [embeddedDisk(dataDir)]),
      {
        names: ['annals_pending_changes', 'annals_pending_oldest_seconds'],
        async read(set) {
          const pending = await readPendingChanges(db);
          const changes = pending.reduce((sum, row) => sum + row.changes, 0);
          set('annals_pending_changes', {}, changes);
          set('annals_pending_oldest_seconds', {}, age.seconds(pending));
        },
      },
      {
        names: ['annals_unsealed_positions', 'annals_unsealed_oldest_seconds'],
        async read(set) {
          const lag = await readSealingLag(db);
          if (lag === undefined) return;
          set('annals_unsealed_positions', {}, lag.positions);
          set('annals_unsealed_oldest_seconds', {}, lag.seconds);
        },
      },
      {
        names: ['annals_altered_histories'],
        async read(set) {
          const altered = await countAltered(db);
          if (altered !== undefined) set('annals_altered_histories', {}, altered);
        },
      },
      {
        names: ['annals_set_back_histories'],
        async read(set) {
          const setBack = await countSetBack(db, Date.now());
          if (setBack !== undefined) set('annals_set_back_histories', {}, setBack);
        },
      },
      {
        names: ['annals_jobs', 'annals_job_oldest_seconds'],
        async read(set) {
          for (const { type, state, count, oldest } of await readOpenJobs(db)) {
            set('annals_jobs', { type, state }, count);
            set('annals_job_oldest_seconds', { type, state }, oldest);
          }
        },
      },
      {
        names: ['annals_mails_waiting', 'annals_mail_oldest_seconds'],
        async read(set) {
          const { count, oldest } = await readWaitingMails(db);
          set('annals_mails_waiting', {}, count);
          set('annals_mail_oldest_seconds', {}, oldest);
        },
      },
      {
        names: ['annals_subscriptions', 'annals_delivery_parked_changes'],
        async read(set) {
          const parkedOf = new Map<string, number>();
          for (const { type, state, count, parked } of await readDeliveryFigures(db)) {
            set('annals_subscriptions', { target: type, state }, count);
            parkedOf.set(type, (parkedOf.get(type) ?? 0) + parked);
          }
          for (const [target, parked] of parkedOf) set('annals_delivery_parked_changes', { target }, parked);
        },
      },
      {
        names: ['annals_delivery_lag_positions', 'annals_delivery_lag_seconds'],
        async read(set) {
          for (const { type, positions, seconds } of await readDeliveryLag(db)) {
            set('annals_delivery_lag_positions', { target: type }, positions);
            set('annals_delivery_lag_seconds', { target: type }, seconds);
          }
        },
      },
      {
        names: ['annals_rejected_changes'],
        async read(set) {
          const { rows } = await sql<{ count: number }>`select count(*) as count from change_rejected`.execute(db);
          set('annals_rejected_changes', {}, rows[0]?.count ?? 0);
        },
      },
      {
        names: ['annals_console_sessions'],
        read: async (set) => set('annals_console_sessions', {}, await countSessions(db)),
      },
      capturePosition(db),
    ];
  });
}

function embeddedDisk(dataDir: string): DatabaseFigure {
  return {
    names: ['annals_database_disk_bytes', 'annals_database_disk_free_bytes'],
    async read(set) {
      const { total, free } = await readEmbeddedDisk(dataDir);
      set('annals_database_disk_bytes', {}, total);
      set('annals_database_disk_free_bytes', {}, free);
    },
  };
}

/** Measures the progress of capture. Returns a function that closes the connection to Annals' database. */
export function measureCapture(metrics: Metrics, figures: CaptureFigures, databaseUrl: string): () => Promise<void> {
  metrics.beforeRead(() => {
    metrics.set('annals_capture_lag_seconds', {}, figures.lagMilliseconds / 1000);
    metrics.set('annals_capture_lag_bytes', {}, figures.lagBytes);
    metrics.set('annals_capture_slot_bytes', {}, figures.slotBytes);
    const { slotSafeBytes } = figures;
    if (slotSafeBytes === undefined) metrics.clear('annals_capture_slot_safe_bytes');
    else metrics.set('annals_capture_slot_safe_bytes', {}, slotSafeBytes);
  });
  return measureBeside(metrics, databaseUrl, (db) => [capturePosition(db)]);
}

/** Only installations with capture have this figure. */
function capturePosition(db: Database): DatabaseFigure {
  return {
    names: ['annals_capture_position_age_seconds'],
    async read(set) {
      const age = await readPositionAge(db);
      if (age !== undefined) set('annals_capture_position_age_seconds', {}, age);
    },
  };
}

/** Measures the pending rows in the outbox of a source. */
export function measureRelay(metrics: Metrics, source: Source): void {
  let client: pg.Client | undefined;
  let attempts = 0;
  measureDatabase(metrics, {
    up: 'annals_relay_source_up',
    begin: async () => {
      attempts += 1;
      const attempt = attempts;
      const connected = await connectSource(source, 'transactions');
      if (attempt !== attempts) {
        // The source timed out before it answered.
        await connected.end();
        return;
      }
      client = connected;
      await beginSource(client);
      await client.query(`set local statement_timeout = ${statementLimit}`);
    },
    figures: [
      {
        names: ['annals_relay_pending_changes', 'annals_relay_oldest_seconds'],
        read: async (set) => {
          if (client === undefined) return;
          const { changes, oldest } = await readOutboxFigures(client);
          set('annals_relay_pending_changes', {}, changes);
          set('annals_relay_oldest_seconds', {}, oldest);
        },
      },
    ],
    end: () => {
      // The driver closes the socket if a statement is still running.
      client?.end().catch(() => {});
      client = undefined;
      attempts += 1;
    },
  });
}

function measureBeside(
  metrics: Metrics,
  databaseUrl: string,
  figuresOf: (db: Database) => readonly DatabaseFigure[],
): () => Promise<void> {
  const { db, cut, end } = createSideConnection(databaseUrl, { applicationName: 'annals metrics', statementLimit });
  measureDatabase(metrics, {
    up: 'annals_database_up',
    begin: () => sql`select 1`.execute(db),
    figures: figuresOf(db),
    end: (isLate) => {
      if (isLate) cut();
    },
  });
  return end;
}

/** The number of active sessions of all tenants, without ended ones that remain for their keys. */
export async function countSessions(db: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from console_session where expires_at > statement_timestamp() and not for_keys`.execute(
    db,
  );
  return rows[0]?.count ?? 0;
}

/** The unfinished jobs of all tenants. A running job may also be pausing before a retry. */
interface OpenJobs {
  readonly type: JobType;
  readonly state: 'waiting' | 'running';
  readonly count: number;
  /** Seconds since the oldest was queued; 0 without any. */
  readonly oldest: number;
}

const jobTypes: readonly JobType[] = ['AGENT_CHAT', 'EXPORT'];

/** The numbers by type and state, from the indexes of open jobs. */
async function readOpenJobs(db: Database): Promise<OpenJobs[]> {
  const figures = sql`type, count(*) as count,
    extract(epoch from clock_timestamp() - min(queued_at))::double precision as oldest`;
  const { rows: waiting } = await sql<Omit<OpenJobs, 'state'>>`
    select ${figures} from job where status = 'in_progress' and held_until is null group by type`.execute(db);
  const { rows: running } = await sql<Omit<OpenJobs, 'state'>>`
    select ${figures} from job where status = 'in_progress' and held_until is not null group by type`.execute(db);
  return jobTypes.flatMap((type) => {
    const ofType = { type, count: 0, oldest: 0 };
    const find = (rows: typeof waiting) => rows.find((row) => row.type === type);
    return [
      { ...ofType, ...find(waiting), state: 'waiting' as const },
      { ...ofType, ...find(running), state: 'running' as const },
    ];
  });
}

/** The number of waiting mails of all tenants, and the seconds since the oldest was queued: 0 without any. */
async function readWaitingMails(db: Database): Promise<{ count: number; oldest: number }> {
  const { rows } = await sql<{ count: number; oldest: number }>`
    select count(*) as count,
           coalesce(extract(epoch from clock_timestamp() - min(queued_at)), 0)::double precision as oldest
      from mail where sent_at is null`.execute(db);
  return rows[0] ?? { count: 0, oldest: 0 };
}

interface PendingChanges {
  readonly tenant: string;
  readonly changes: number;
  /** Identifies the oldest row of them. */
  readonly oldest: number;
}

/** Reads the changes of all tenants that are not folded yet. Its cost depends on their number alone. */
async function readPendingChanges(db: Database): Promise<PendingChanges[]> {
  const { rows } = await sql<PendingChanges>`
    select tenant, sum(cardinality(ats))::bigint as changes, min(delta) as oldest from change_delta group by tenant`.execute(
    db,
  );
  return rows;
}

/** Rows of changes have no time of their own, so the age of a row counts from when it was first seen as the oldest. */
export class AgeOfOldest {
  #seen = new Map<string, { oldest: number; since: number }>();

  seconds(pending: readonly { tenant: string; oldest: number }[]): number {
    const now = performance.now();
    const seen = new Map<string, { oldest: number; since: number }>();
    for (const { tenant, oldest } of pending) {
      const before = this.#seen.get(tenant);
      seen.set(tenant, before?.oldest === oldest ? before : { oldest, since: now });
    }
    this.#seen = seen;
    return Math.max(0, ...[...seen.values()].map(({ since }) => (now - since) / 1000));
  }
}
