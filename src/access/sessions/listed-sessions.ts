import './session-store.ts';
import { type RawBuilder, sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { endOfMakers, makersOfClient } from '../oauth/makers.ts';

const id = sql`encode(substr(s.secret_hash, 1, 8), 'hex')`;

/** Its cookie is accepted. */
const isActive = sql`s.expires_at > statement_timestamp() and not s.for_keys`;

/** Its client was not revoked, has not expired, and has not ended with a client that made it. */
const isClientActive = (tenant: string) => sql`c.revoked_at is null
  and coalesce(least(c.expires_at, ${endOfMakers(makersOfClient(tenant))}) > statement_timestamp(), true)`;

const jsonTime = (time: RawBuilder<unknown>) =>
  sql`to_json(to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`;

/** The members of a session as JSON text. Members without a value are not shown. */
const members: Readonly<Record<string, RawBuilder<unknown>>> = {
  client: sql`to_json(s.client_id)`,
  name: sql`to_json(c.name)`,
  issuer: sql`to_json(s.issuer)`,
  subject: sql`to_json(s.subject)`,
  by: sql`to_json(case when s.subject is not null then 'account' when s.by_link then 'link' else 'secret' end)`,
  address: sql`to_json(s.address)`,
  program: sql`to_json(s.program)`,
  createdAt: jsonTime(sql`s.created_at`),
  seenAt: jsonTime(sql`greatest(s.seen_at, s.created_at)`),
  expiresAt: jsonTime(sql`s.expires_at`),
};

const document = sql<string>`concat('{"id":', to_json(${id}), ${sql.join(
  Object.entries(members).map(([name, value]) => sql`${sql.lit(`,"${name}":`)} || ${value}`),
)}, '}')`;

/** The active sessions of a tenant, for lists. */
export function sessionRows(tenant: string): DocumentRows {
  const from = sql`(select s.tenant, ${id} as id, ${document} as document, (${document})::jsonb as fields
    from console_session s join oauth_client c on c.tenant = s.tenant and c.client_id = s.client_id
    where s.tenant = ${tenant} and ${isActive} and ${isClientActive(tenant)}) console_session`;
  return { from, where: sql`tenant = ${tenant}` };
}

/** The hash of an active session's secret; undefined if there is none with the id. */
export async function findSession(
  transaction: DatabaseTransaction,
  tenant: string,
  sessionId: string,
): Promise<Uint8Array | undefined> {
  const { rows } = await sql<{ hash: Uint8Array }>`
    select s.secret_hash as hash from console_session s
      where s.tenant = ${tenant} and ${id} = ${sessionId} and ${isActive}`.execute(transaction);
  return rows[0]?.hash;
}

/** An active session as JSON text. */
export async function readListedSession(db: Database, tenant: string, sessionId: string): Promise<string | undefined> {
  const { from, where } = sessionRows(tenant);
  const { rows } = await sql<{ document: string }>`
    select document from ${from} where ${where} and id = ${sessionId}`.execute(db);
  return rows[0]?.document;
}

/** The active sessions of the tenant, newest first. */
export async function listSessions(db: Database, tenant: string): Promise<object[]> {
  const { from, where } = sessionRows(tenant);
  const { rows } = await sql<{ fields: object }>`
    select document::json as fields from ${from} where ${where} order by fields ->> 'createdAt' desc, id`.execute(db);
  return rows.map(({ fields }) => fields);
}
