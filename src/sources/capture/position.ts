import { type Generated, sql } from 'kysely';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { CaptureError } from './capture-error.ts';

/** A position in the write-ahead log, as PostgreSQL prints it: two hexadecimal numbers, for example `0/16B3748`. */
export type Lsn = bigint;

const pattern = /^([0-9A-F]{1,8})\/([0-9A-F]{1,8})$/i;

export function parseLsn(text: string): Lsn {
  const [, high, low] = pattern.exec(text) ?? [];
  if (high === undefined || low === undefined) throw new Error(`PostgreSQL sent ${JSON.stringify(text)} as an LSN`);
  return (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
}

export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16).toUpperCase()}/${(lsn & 0xffff_ffffn).toString(16).toUpperCase()}`;
}

/** How far capture has recorded: the last transaction of the source, and how much of it. */
export interface Position {
  /** The start and the end of its commit record. */
  readonly commitLsn: Lsn;
  readonly endLsn: Lsn;
  /** Together they distinguish the transaction from another one at the same LSN. Microseconds since 1970. */
  readonly xid: number | undefined;
  readonly committedAt: bigint | undefined;
  /** Row changes of it that are recorded. */
  readonly changes: number;
  readonly complete: boolean;
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

/** Overwrites the position. Only call it while no capture records. */
export async function resetPosition(db: Connection, position: Position): Promise<void> {
  const row = { singleton: true, ...rowOf(position) };
  await db
    .insertInto('capture_position')
    .values(row)
    .onConflict((conflict) => conflict.column('singleton').doUpdateSet(row))
    .execute();
}

/**
 * Moves the position. Call it first in the recording transaction, which then holds the row lock until it ends. Throws a
 * PositionTakenError if the row is not what this process last wrote.
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

/** Seconds since capture stored its position; undefined without a capture. */
export async function readPositionAge(db: Connection): Promise<number | undefined> {
  const { rows } = await sql<{ age: number }>`
    select extract(epoch from clock_timestamp() - heartbeat)::double precision as age from capture_position`.execute(
    db,
  );
  return rows[0]?.age;
}

interface CapturePositionTable {
  singleton: Generated<boolean>;
  system_identifier: string;
  timeline: number;
  slot: string;
  phase: Position['phase'];
  commit_lsn: string;
  end_lsn: string;
  xid: number | null;
  committed_at: number | null;
  changes: number;
  complete: boolean;
  last_at: number;
  heartbeat: Date;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    capture_position: CapturePositionTable;
  }
}
