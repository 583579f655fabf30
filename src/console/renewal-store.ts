import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { tenantsWith } from '../postgres/tenants/tenants-with.ts';
import './tables.ts';

/** A session of a person whose provider and rules are to be asked again. */
export interface SessionToCheck {
  clientId: string;
  subject: string;
  renewal: Buffer;
  /** Whether it is over, and stays for its keys. */
  forKeys: boolean;
}

const dueForCheck = (after: number) =>
  sql<boolean>`checked_at <= statement_timestamp() - ${after} * interval '1 millisecond' and expires_at > statement_timestamp()`;

/** The tenants with sessions that were not checked for so many milliseconds. */
export async function tenantsWithUncheckedSessions(db: Database, after: number): Promise<string[]> {
  const seconds = Math.ceil(after / 1_000);
  return await tenantsWith(db, {
    table: 'console_session',
    condition: `checked_at <= statement_timestamp() - interval '${seconds} seconds' and expires_at > statement_timestamp()`,
  });
}

/** When a renewal that was begun now is over, in any process: nobody else uses the refresh token, which is good once, before then. */
const takenUntil = sql<Date>`statement_timestamp() + interval '1 minute'`;

/** Takes the refresh token of such a session, until `giveRenewal` or `updateCheckedSession`. */
export async function takeUncheckedSession(
  db: Database,
  tenant: string,
  after: number,
): Promise<SessionToCheck | undefined> {
  const { rows } = await sql<SessionToCheck>`
    update console_session set checked_at = ${takenUntil}
      where tenant = ${tenant} and secret_hash = (
        select secret_hash from console_session where tenant = ${tenant} and ${dueForCheck(after)}
          order by checked_at limit 1 for update skip locked)
      returning client_id as "clientId", subject, sealed_renewal as renewal,
        for_keys as "forKeys"`.execute(db);
  return rows[0];
}

/** What the provider and the rules say of a session's person today. */
export async function updateCheckedSession(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
  { scopes, renewal, tenants }: { scopes: readonly string[]; renewal: Uint8Array; tenants: readonly string[] },
): Promise<void> {
  await transaction
    .updateTable('console_session')
    .set({
      scopes: [...scopes],
      sealed_renewal: renewal,
      tenants: [...tenants],
      checked_at: sql<Date>`statement_timestamp()`,
    })
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .execute();
}

/** The person of a session, and the refresh token, which is taken as `takeUncheckedSession` takes it. */
export interface TakenRenewal {
  subject: string;
  /** Null where nobody can ask the provider again. */
  renewal: Buffer | null;
}

/** For a change to another tenant. Undefined where the session is not a person's or has expired; taken: somebody else has the token now. */
export async function takeRenewal(
  db: Database,
  tenant: string,
  secretHash: Uint8Array,
): Promise<TakenRenewal | 'taken' | undefined> {
  const { rows } = await sql<TakenRenewal & { free: boolean }>`
    with before as (
      -- Here, because a cluster refuses it where it writes.
      select case when checked_at <= statement_timestamp() then ${takenUntil} else checked_at end as taken_until,
             checked_at is null or checked_at <= statement_timestamp() as free
        from console_session where tenant = ${tenant} and secret_hash = ${secretHash} for update
    )
    update console_session as s set checked_at = before.taken_until
      from before
      where s.tenant = ${tenant} and s.secret_hash = ${secretHash} and s.subject is not null
        and s.expires_at > statement_timestamp()
      returning s.subject, s.sealed_renewal as renewal, before.free`.execute(db);
  const [row] = rows;
  return row === undefined || row.free ? row : 'taken';
}

/** Gives the refresh token back, or the one that has replaced it, to the session of a person's client. */
export async function giveRenewal(db: Database, tenant: string, clientId: string, renewal: Uint8Array): Promise<void> {
  await db
    .updateTable('console_session')
    .set({ sealed_renewal: renewal, checked_at: sql<Date>`statement_timestamp()` })
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .execute();
}
