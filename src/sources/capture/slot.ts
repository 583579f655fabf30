import pg from 'pg';
import { hasCode } from '../../core/errors.ts';
import { type Source, withSource } from '../../postgres/source/source.ts';
import type { SourceLog } from '../source-log.ts';
import { CaptureError } from './capture-error.ts';
import { type Lsn, type Position, parseLsn } from './position.ts';

/** The name of the slot and of the publication. */
export const defaultSlot = 'annals';
export const slotPattern = /^[a-z][a-z0-9_]{0,62}$/;

/** A replication slot of the source. */
export interface Slot {
  readonly database: string | null;
  readonly plugin: string | null;
  /** The backend that is reading it. */
  readonly activePid: number | null;
  readonly confirmedFlush: Lsn | null;
  readonly keptBytes: number;
  readonly safeBytes: number | undefined;
  /** `lost`: the source has dropped WAL that the slot needs. */
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

interface CreatedSlot {
  /** The slot has the transactions that commit after this point. */
  readonly start: Lsn;
  /** A snapshot of the database at that point, valid until the next command on the connection. */
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

/** Drops the slot if it exists. Gives a process that is still reading it 5 seconds to end. */
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
  return hasCode(error, '55006');
}

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

/** How far capture is behind the source. */
export class CaptureFigures {
  /** Bytes of the source's WAL that are not recorded yet. */
  lagBytes = 0;
  /** Milliseconds since the last recorded commit while there is something to record; otherwise 0. */
  lagMilliseconds = 0;
  /** Bytes of WAL that the source retains for the slot. */
  slotBytes = 0;
  /** Bytes that the source can write before it drops what the slot needs. Undefined: unlimited. */
  slotSafeBytes: number | undefined;
}

interface SlotWatchOptions {
  readonly slot: string;
  readonly figures: CaptureFigures;
  readonly log: SourceLog;
  /** Milliseconds between checks while nothing can be recorded. */
  readonly interval: number;
}

/** Bytes and milliseconds of the first warnings. Further ones follow at each doubling. */
const firstWarningBytes = 1024 ** 3;
const firstWarningLag = 60_000;

/**
 * Watches the lag of capture, and the log that the source retains for it. Runs even while Annals' own database is
 * unavailable, since that is when the source's disk fills up.
 */
export class SlotWatch {
  readonly #options: SlotWatchOptions;
  #warningBytes = firstWarningBytes;
  #warningLag = firstWarningLag;
  #isInDanger = false;
  #isBlind = false;
  #nextLook = 0;
  /** The time of the last recorded commit, in milliseconds since 1970. */
  #committedAt: number | undefined;

  constructor(options: SlotWatchOptions) {
    this.#options = options;
  }

  recorded(position: Position, serverEnd: Lsn): void {
    const { figures } = this.#options;
    figures.lagBytes = Number(serverEnd > position.endLsn ? serverEnd - position.endLsn : 0n);
    if (position.committedAt !== undefined) this.#committedAt = Number(position.committedAt / 1000n);
    this.#updateLag();
  }

  /** Checks the slot on its own connection, if due. Logs once if it cannot, since full disks then go unnoticed. */
  async lookWhileAway(source: Source): Promise<void> {
    if (performance.now() < this.#nextLook) return;
    this.#nextLook = performance.now() + this.#options.interval;
    // Heartbeats are committed all the time, so there is something to record.
    this.#updateLag();
    try {
      await withSource(source, (client) => this.look(client));
      this.#isBlind = false;
    } catch (error) {
      const { slot, log } = this.#options;
      if (!this.#isBlind) log.warn({ slot, err: error }, 'capture cannot see how much of its log the source keeps');
      this.#isBlind = true;
    }
  }

  async look(client: pg.Client): Promise<void> {
    const { slot: name, figures, log } = this.#options;
    const slot = await readSlot(client, name);
    if (slot === undefined) return;
    const { keptBytes, safeBytes, walStatus } = slot;
    figures.slotBytes = keptBytes;
    figures.slotSafeBytes = safeBytes;
    if (keptBytes >= this.#warningBytes) {
      log.warn({ slot: name, keptBytes, safeBytes, walStatus }, 'the source keeps much of its log for capture');
      this.#warningBytes = keptBytes * 2;
    } else if (keptBytes < firstWarningBytes) {
      this.#warningBytes = firstWarningBytes;
    }
    const isInDanger = safeBytes !== undefined && safeBytes < keptBytes;
    if (isInDanger && !this.#isInDanger) {
      log.warn({ slot: name, keptBytes, safeBytes, walStatus }, 'the source will soon drop the log that capture needs');
    }
    this.#isInDanger = isInDanger;
    this.#warnOfLag();
  }

  #warnOfLag(): void {
    const { figures, log } = this.#options;
    const { lagMilliseconds, lagBytes } = figures;
    if (lagMilliseconds >= this.#warningLag) {
      log.warn({ lagMilliseconds, lagBytes }, 'capture is behind the source');
      this.#warningLag = lagMilliseconds * 2;
    } else if (lagMilliseconds < firstWarningLag) {
      this.#warningLag = firstWarningLag;
    }
  }

  #updateLag(): void {
    const committed = this.#committedAt;
    this.#options.figures.lagMilliseconds = committed === undefined ? 0 : Math.max(0, Date.now() - committed);
  }
}
