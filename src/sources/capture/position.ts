import './tables.ts';
import { sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { CaptureError } from './capture-error.ts';

/** A position in the write-ahead log, as PostgreSQL prints it: two hexadecimal numbers, for example `0/16B3748`. */
export type Lsn = bigint;

const pattern = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i;

/** Throws for a text that is no LSN. */
export function parseLsn(text: string): Lsn {
  const [, high, low] = pattern.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`PostgreSQL sent ${JSON.stringify(text)} as an LSN`);
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffff_ffffn).toString(16).toUpperCase()}`;
}

/** A transaction of the source, as far as it is recorded. */
export interface RecordedTransaction {
  /** Where its commit record begins, and where it ends. */
  readonly commitLsn: Lsn;
  readonly endLsn: Lsn;
  /** With the time of the commit, in microseconds since 1970, it tells the transaction from another one at the same LSN. */
  readonly xid: number | undefined;
  readonly committedAt: bigint | undefined;
  /** How many of its row changes are recorded. */
  readonly changes: number;
  readonly complete: boolean;
}

/** How far capture has recorded. */
export interface Position extends RecordedTransaction {
  readonly systemIdentifier: string;
  readonly timeline: number;
  readonly slot: string;
  /** `preparing`: creating the slot. `copying`: comparing tables with the history. Both restart after a crash. */
  readonly phase: 'preparing' | 'copying' | 'recording';
  /** Milliseconds since 1970. */
  readonly lastAt: number;
}

/** Another capture has recorded since this process read or wrote the position. */
class PositionTakenError extends CaptureError {
  constructor() {
    super('another capture of this installation records: this process ends');
    this.name = 'PositionTakenError';
  }
}

export async function readPosition(db: Connection): Promise<Position | undefined> {
  const row = await db
    .selectFrom('capture_position')
    .select(['system_identifier', 'timeline', 'slot', 'phase', 'xid', 'committed_at', 'changes', 'complete', 'last_at'])
    .select([sql<string>`commit_lsn::text`.as('commit_lsn'), sql<string>`end_lsn::text`.as('end_lsn')])
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return {
    systemIdentifier: row.system_identifier,
    timeline: row.timeline,
    slot: row.slot,
    phase: row.phase,
    commitLsn: parseLsn(row.commit_lsn),
    endLsn: parseLsn(row.end_lsn),
    xid: row.xid ?? undefined,
    committedAt: row.committed_at === null ? undefined : BigInt(row.committed_at),
    changes: row.changes,
    complete: row.complete,
    lastAt: row.last_at,
  };
}

/** Replaces the position, whatever it was: only where no capture records. */
export async function resetPosition(db: Connection, position: Position): Promise<void> {
  const row = { singleton: true, ...rowOf(position) };
  await db
    .insertInto('capture_position')
    .values(row)
    .onConflict((conflict) => conflict.column('singleton').doUpdateSet(row))
    .execute();
}

/**
 * Moves the position in the transaction that records, before it records. The row stays locked until that transaction ends. Throws a
 * PositionTakenError where the row is not what this process wrote last.
 */
export async function movePosition(transaction: DatabaseTransaction, from: Position, to: Position): Promise<void> {
  const { numUpdatedRows } = await transaction
    .updateTable('capture_position')
    .set(rowOf(to))
    .where(({ and }) => and({ slot: from.slot, phase: from.phase }))
    .where('commit_lsn', '=', formatLsn(from.commitLsn))
    .where('end_lsn', '=', formatLsn(from.endLsn))
    .where(({ and }) => and({ changes: from.changes, complete: from.complete, last_at: from.lastAt }))
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) throw new PositionTakenError();
}

export async function deletePosition(db: Connection): Promise<void> {
  await db.deleteFrom('capture_position').execute();
}

function rowOf(position: Position) {
  return {
    system_identifier: position.systemIdentifier,
    timeline: position.timeline,
    slot: position.slot,
    phase: position.phase,
    commit_lsn: formatLsn(position.commitLsn),
    end_lsn: formatLsn(position.endLsn),
    xid: position.xid ?? null,
    committed_at: position.committedAt === undefined ? null : Number(position.committedAt),
    changes: position.changes,
    complete: position.complete,
    last_at: position.lastAt,
    heartbeat: new Date(),
  };
}

/** Seconds since capture stored its position; undefined where there is no capture. */
export async function readPositionAge(db: Connection): Promise<number | undefined> {
  const { rows } = await sql<{ age: number }>`
    select extract(epoch from clock_timestamp() - heartbeat)::double precision as age from capture_position`.execute(
    db,
  );
  return rows[0]?.age;
}
