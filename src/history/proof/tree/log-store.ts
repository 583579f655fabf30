import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';
import type { TenantWork } from '../../../postgres/tenants/tenants-with.ts';

/** A name and a key under which the tree of a tenant is signed. */
export interface Log {
  readonly origin: string;
  readonly vkey: string;
  /** The position of the receipt with which it begins; null: nothing is sealed yet. */
  readonly receipt: number | null;
  /** The leaves of its last checkpoint. */
  readonly size: number;
  /** The note of its last checkpoint. */
  readonly checkpoint: string | null;
  readonly signedAt: Date | null;
  /** Whether the next checkpoint is due, also where the last one is of a moment that has not been. */
  readonly isDue: boolean;
  /** When the history was checked against it last, and whether it was what was sealed; null: never. */
  readonly checkedAt: Date | null;
  readonly checkRight: boolean | null;
}

/** From one checkpoint to the next. A look every five seconds finds that it is due: so what is recorded has one within a minute. */
export const betweenCheckpoints = '50 s';

/** Tenants with a log that is signed. */
export const tenantsWithLog: TenantWork = { table: 'proof_log', condition: 'ended is null' };

/** The log of the tenant that is signed; undefined where there is none. */
export async function readLog(db: Connection, tenant: string): Promise<Log | undefined> {
  const { rows } = await sql<Log>`
    select origin, vkey, receipt, size, checkpoint, signed_at as "signedAt",
           coalesce(signed_at not between statement_timestamp() - ${betweenCheckpoints}::interval and statement_timestamp(), true) as "isDue",
           checked_at as "checkedAt", check_right as "checkRight"
      from proof_log where tenant = ${tenant} and ended is null`.execute(db);
  return rows[0];
}

/** Begins a log in the place of the one that is signed now, if there is one. */
export async function storeLog(
  db: Connection,
  tenant: string,
  { origin, vkey, receipt }: Pick<Log, 'origin' | 'vkey' | 'receipt'>,
): Promise<void> {
  await sql`update proof_log set ended = statement_timestamp() where tenant = ${tenant} and ended is null`.execute(db);
  await sql`insert into proof_log (tenant, origin, vkey, receipt)
    values (${tenant}, ${origin}, ${vkey}, ${receipt}::bigint)`.execute(db);
}

/** Notes the receipt of a log that somebody asked for before anything was sealed. */
export async function storeFirstReceipt(
  db: Connection,
  tenant: string,
  origin: string,
  receipt: number,
): Promise<void> {
  await sql`update proof_log set receipt = ${receipt} where tenant = ${tenant} and origin = ${origin}`.execute(db);
}

/** Publishes the newest checkpoint of a log. */
export async function storeCheckpoint(
  db: Connection,
  tenant: string,
  origin: string,
  { size, checkpoint }: { size: number; checkpoint: string },
): Promise<void> {
  await sql`update proof_log set size = ${size}, checkpoint = ${checkpoint}, signed_at = statement_timestamp()
    where tenant = ${tenant} and origin = ${origin}`.execute(db);
}
