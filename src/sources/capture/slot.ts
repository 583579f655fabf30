import pg from 'pg';
import { CaptureError } from './capture-error.ts';
import { type Lsn, parseLsn } from './lsn.ts';

/** The names that capture has at the source. The slot and the publication have the same one. */
export const defaultSlot = 'annals';
export const slotPattern = /^[a-z][a-z0-9_]{0,62}$/;

/** A replication slot of the source. */
export interface Slot {
  readonly database: string | null;
  readonly plugin: string | null;
  /** The backend that reads it. */
  readonly activePid: number | null;
  readonly confirmedFlush: Lsn | null;
  /** Bytes of the log that the source keeps for it. */
  readonly keptBytes: number;
  /** Bytes of the log that the source may still write before it drops the slot's part. Undefined: without end. */
  readonly safeBytes: number | undefined;
  /** `lost`: the source has dropped what the slot needs. */
  readonly walStatus: string | null;
}

type SlotRow = Record<
  'database' | 'plugin' | 'active_pid' | 'confirmed' | 'kept' | 'safe' | 'wal_status',
  string | null
>;

export async function readSlot(client: pg.Client, slot: string): Promise<Slot | undefined> {
  const { rows } = await client.query<SlotRow>(
    `select database, plugin, active_pid, confirmed_flush_lsn as confirmed, wal_status, safe_wal_size as safe,
            case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end - restart_lsn as kept
       from pg_catalog.pg_replication_slots where slot_name = $1`,
    [slot],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  return {
    database: row.database,
    plugin: row.plugin,
    activePid: row.active_pid === null ? null : Number(row.active_pid),
    confirmedFlush: row.confirmed === null ? null : parseLsn(row.confirmed),
    keptBytes: Number(row.kept ?? 0),
    safeBytes: row.safe === null ? undefined : Number(row.safe),
    walStatus: row.wal_status,
  };
}

export interface CreatedSlot {
  /** Changes of transactions that commit after this point come from the slot. */
  readonly start: Lsn;
  /** A snapshot of the database at that point. It is valid until the next command on the connection. */
  readonly snapshot: string;
}

/** Creates the slot on a replication connection. On PostgreSQL 17 and later its standbys keep it too. */
export async function createSlot(replication: pg.Client, slot: string, version: number): Promise<CreatedSlot> {
  const name = pg.escapeIdentifier(slot);
  const options =
    version >= 170_000
      ? `(SNAPSHOT 'export', FAILOVER)`
      : version >= 150_000
        ? `(SNAPSHOT 'export')`
        : 'EXPORT_SNAPSHOT';
  const { rows } = await replication.query<{ consistent_point: string; snapshot_name: string }>(
    `CREATE_REPLICATION_SLOT ${name} LOGICAL pgoutput ${options}`,
  );
  const [row] = rows;
  if (row === undefined) throw new CaptureError('the source made a slot without saying where it begins');
  return { start: parseLsn(row.consistent_point), snapshot: row.snapshot_name };
}

/** Drops the slot where it is there. A process that still reads it gets some seconds to end. */
export async function dropSlot(client: pg.Client, slot: string): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { rowCount } = await client.query(
        'select pg_drop_replication_slot(slot_name) from pg_catalog.pg_replication_slots where slot_name = $1',
        [slot],
      );
      return rowCount !== 0;
    } catch (error) {
      if (!isInUse(error) || attempt >= 50) throw error;
      await client.query('select pg_sleep(0.1)');
    }
  }
}

/** Whether the slot is read by another process (SQLSTATE object_in_use). */
export function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '55006';
}

/** What the source says about itself on a replication connection. */
export interface SourceSystem {
  readonly identifier: string;
  readonly timeline: number;
  readonly end: Lsn;
}

export async function identifySystem(replication: pg.Client): Promise<SourceSystem> {
  const { rows } = await replication.query<{ systemid: string; timeline: string; xlogpos: string }>('IDENTIFY_SYSTEM');
  const [row] = rows;
  if (row === undefined) throw new CaptureError('the source does not identify itself');
  return { identifier: row.systemid, timeline: Number(row.timeline), end: parseLsn(row.xlogpos) };
}
