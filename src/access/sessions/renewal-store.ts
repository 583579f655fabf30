import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import './session-store.ts';

/** Maximum milliseconds of a renewal: four requests to the provider, and their processing. */
export const maxRenewal = 45_000;

/** A session of a person to renew. */
export interface SessionToCheck {
  clientId: string;
  subject: string;
  renewal: Buffer;
  /** Whether it has ended and remains for its keys. */
  forKeys: boolean;
}

/** SQL: sessions not checked for so many milliseconds, and not being renewed. A constant, without input. */
const dueForCheck = (after: number) =>
  `checked_at <= statement_timestamp() - interval '${Math.ceil(after)} milliseconds' and ${isFree} and expires_at > statement_timestamp()`;

const isFree = '(renewing_until is null or renewing_until <= statement_timestamp())';

/** The tenants with sessions not checked for so many milliseconds. */
export async function tenantsWithUncheckedSessions(db: Database, after: number): Promise<string[]> {
  return await tenantsWith(db, { table: 'console_session', condition: dueForCheck(after) });
}

const inMilliseconds = (time: number) => sql<Date>`statement_timestamp() + ${time} * interval '1 millisecond'`;

/** When a renewal that begins now is over. Until then, no other process may use the one-time refresh token. */
const takenUntil = inMilliseconds(maxRenewal);

/** Takes the refresh token of such a session, until `giveRenewal` or `updateCheckedSession`. */
export async function takeUncheckedSession(
  db: Database,
  tenant: string,
  after: number,
): Promise<SessionToCheck | undefined> {
  const { rows } = await sql<SessionToCheck>`
    update console_session set renewing_until = ${takenUntil}
      where tenant = ${tenant} and secret_hash = (
        select secret_hash from console_session where tenant = ${tenant} and ${sql.raw(dueForCheck(after))}
          order by checked_at limit 1 for update skip locked)
      returning client_id as "clientId", subject, sealed_renewal as renewal,
        for_keys as "forKeys"`.execute(db);
  return rows[0];
}

/** The result of a renewal. */
export async function updateCheckedSession(
  transaction: DatabaseTransaction,
  tenant: string,
  secretHash: Uint8Array,
  {
    scopes,
    renewal,
    idToken,
    tenants,
  }: {
    scopes: readonly string[];
    renewal: Uint8Array;
    /** Undefined: the provider issued none, so the old one stays. */
    idToken: Uint8Array | undefined;
    tenants: readonly string[];
  },
): Promise<void> {
  await transaction
    .updateTable('console_session')
    .set({
      scopes: [...scopes],
      sealed_renewal: renewal,
      ...(idToken !== undefined && { sealed_id_token: idToken }),
      tenants: [...tenants],
      checked_at: sql<Date>`statement_timestamp()`,
      renewing_until: null,
    })
    .where(({ and }) => and({ tenant, secret_hash: secretHash }))
    .execute();
}

/** The person of a session, and the refresh token, taken as by `takeUncheckedSession`. */
interface TakenRenewal {
  subject: string;
  /** Null if the sign-in cannot be renewed. */
  renewal: Buffer | null;
  /** Sealed. */
  idToken: Buffer | null;
  /** The session at the provider. */
  sid: string | null;
}

/** For a move to another tenant. Undefined if the session is not a person's or expired; taken: the token is in use. */
export async function takeRenewal(
  db: Database,
  tenant: string,
  secretHash: Uint8Array,
): Promise<TakenRenewal | 'taken' | undefined> {
  const { rows } = await sql<TakenRenewal & { free: boolean }>`
    with before as (
      -- Here, because a cluster refuses it where it writes.
      select case when ${sql.raw(isFree)} then ${takenUntil} else renewing_until end as taken_until, ${sql.raw(isFree)} as free
        from console_session where tenant = ${tenant} and secret_hash = ${secretHash} for update
    )
    update console_session as s set renewing_until = before.taken_until
      from before
      where s.tenant = ${tenant} and s.secret_hash = ${secretHash} and s.subject is not null
        and s.expires_at > statement_timestamp()
      returning s.subject, s.sealed_renewal as renewal, s.sealed_id_token as "idToken", s.sid, before.free`.execute(db);
  const [row] = rows;
  return row === undefined || row.free ? row : 'taken';
}

/**
 * Returns the refresh token, or its replacement, to the session of a person's client, which counts as unchecked as
 * before and is not renewed for `rest` milliseconds.
 */
export async function giveRenewal(
  db: Database,
  tenant: string,
  clientId: string,
  { renewal, rest }: { renewal: Uint8Array; rest: number },
): Promise<void> {
  await db
    .updateTable('console_session')
    .set({ sealed_renewal: renewal, renewing_until: rest === 0 ? null : inMilliseconds(rest) })
    .where(({ and }) => and({ tenant, client_id: clientId }))
    .execute();
}
