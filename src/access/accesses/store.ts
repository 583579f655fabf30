import { hash, randomBytes } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database } from '../../postgres/database.ts';
import { dropRows } from '../../postgres/tenants/tenants.ts';

/** The kinds of accesses. */
export const accessKinds = [
  'signed_in',
  'signed_out',
  'session_ended',
  'refused',
  'link_made',
  'client_made',
  'client_narrowed',
  'client_rotated',
  'client_revoked',
  'key_made',
  'key_narrowed',
  'key_rotated',
  'key_revoked',
  'grant_made',
  'grant_ended',
  'viewer_token_made',
  'export_downloaded',
  'read',
] as const;

interface AccessEvent {
  readonly tenant: string;
  readonly kind: (typeof accessKinds)[number];
  /** Of the client, key or grant. The name is stored, because the client of a link or person is deleted after its session. */
  readonly clientId: string;
  /** Of a person who signed in with a company account. */
  readonly person?: { readonly issuer: string; readonly subject: string } | undefined;
  readonly details?: Readonly<Record<string, string | number>>;
  readonly caller?: { readonly address: string | undefined; readonly program?: string | undefined } | undefined;
  /** The console session that began or ended. */
  readonly session?: string | undefined;
}

/** Days. */
export const accessRetentionDays = 400;

const now = sql`statement_timestamp()`;

/** Writes the event, in the transaction of its subject where there is one. No-op for a missing client. */
export async function noteAccess(db: Database, event: AccessEvent): Promise<void> {
  await insertEvent(db, event, now, randomBytes(8).toString('hex'));
}

/** Writes a refusal of a client. One row per hour, so that repeated attempts do not fill the table. */
export async function noteRefusal(
  db: Database,
  {
    tenant,
    clientId,
    why,
    address,
  }: { tenant: string; clientId: string; why: 'secret' | 'revoked'; address: string | undefined },
): Promise<void> {
  const event = { tenant, kind: 'refused', clientId, details: { why }, caller: { address } } as const;
  await insertEvent(db, event, sql`date_trunc('hour', ${now}, 'UTC')`, `${why}-${clientId}`);
}

/** Writes that a viewer token was created: one row per client, subject and day. */
export async function noteViewerToken(
  db: Database,
  { subject, ...event }: Pick<AccessEvent, 'tenant' | 'clientId' | 'person' | 'caller'> & { subject: string },
): Promise<void> {
  const creation = { ...event, kind: 'viewer_token_made', details: { subject } } as const;
  const rest = hash('sha256', JSON.stringify([event.clientId, subject])).slice(0, 32);
  await insertEvent(db, creation, sql`date_trunc('day', ${now}, 'UTC')`, rest);
}

async function insertEvent(
  db: Database,
  { tenant, kind, clientId, person, details = {}, caller, session }: AccessEvent,
  at: RawBuilder<unknown>,
  rest: string,
): Promise<void> {
  await sql`
    insert into access_event as known (tenant, id, at, kind, client, name, on_behalf_of, issuer, subject, details, address, program, session)
      select tenant, ${beginOfId(at)} || '-' || ${rest}::text, ${at}, ${kind}::text, id, name, on_behalf_of, ${person?.issuer ?? null}::text,
          ${person?.subject ?? null}::text, ${JSON.stringify(details)}::json, ${caller?.address ?? null}::text, ${caller?.program ?? null}::text,
          ${session ?? null}::text
        from (
          select tenant, client_id as id, name, null as on_behalf_of from oauth_client
            where tenant = ${tenant} and client_id = ${clientId}
          union all select tenant, key_id, name, null from access_key where tenant = ${tenant} and key_id = ${clientId}
          union all select g.tenant, g.grant_id, g.name, c.name from access_grant g
            join oauth_client c on c.tenant = g.tenant and c.client_id = g.client_id
            where g.tenant = ${tenant} and g.grant_id = ${clientId}
        ) who
      on conflict (tenant, id) do update set count = known.count + 1, address = coalesce(excluded.address, known.address),
        program = coalesce(excluded.program, known.program)`.execute(db);
}

function beginOfId(at: RawBuilder<unknown>): RawBuilder<unknown> {
  return sql`lpad(to_hex((extract(epoch from ${at}) * 1000000)::bigint), 14, '0')`;
}

/** The members of an event as JSON text. Members without a value are not shown. */
const members: Readonly<Record<string, RawBuilder<unknown>>> = {
  at: sql`to_json(to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`,
  kind: sql`to_json(kind)`,
  client: sql`to_json(client)`,
  name: sql`to_json(name)`,
  onBehalfOf: sql`to_json(on_behalf_of)`,
  issuer: sql`to_json(issuer)`,
  subject: sql`to_json(subject)`,
  address: sql`to_json(address)`,
  program: sql`to_json(program)`,
  session: sql`to_json(session)`,
  details: sql`details`,
  count: sql`count`,
};

const document = sql<string>`concat('{"id":', to_json(id), ${sql.join(
  Object.entries(members).map(([name, value]) => sql`${sql.lit(`,"${name}":`)} || ${value}`),
)}, '}')`;

/** The events of a tenant, for lists. */
export function accessRows(tenant: string): DocumentRows {
  const from = sql`(select tenant, id, ${document} as document, (${document})::jsonb as fields
    from access_event where tenant = ${tenant}) access_event`;
  return { from, where: sql`tenant = ${tenant}` };
}

const old = `id < lpad(to_hex((extract(epoch from statement_timestamp() - interval '${accessRetentionDays} days') * 1000000)::bigint), 14, '0')`;

/** Deletes expired events of all tenants in batches. */
export async function dropOldAccesses(db: Database): Promise<void> {
  await dropRows(db, { table: 'access_event', condition: old });
}
