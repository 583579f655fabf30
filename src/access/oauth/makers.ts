// A client or a key that others made has at most the rights of each of its makers, and ends with any of them. Their rows
// are read with it, so that a change of theirs takes effect as one of its own does. `of` is the credential's row.
import { type RawBuilder, sql } from 'kysely';

/** Milliseconds, as long as a session: after that, what a person who cannot be confirmed made is refused. */
export const maxUnconfirmed = 8 * 60 * 60_000;

/** The clients through which a credential was made: an array of their ids, the outermost first. */
interface Made {
  /** As a value: a cluster plans a subquery by the tenant that it names, not by that of the row around it. */
  readonly tenant: string;
  readonly makers: RawBuilder<unknown>;
}

const confirmedUntil = sql`coalesce(m.confirmed_at, m.created_at) + ${sql.lit(maxUnconfirmed)} * interval '1 millisecond'`;

/**
 * When a credential ends through its makers; null: not through them. A client without a secret is that of a session: a
 * link ends within that time, and a person is confirmed every few minutes.
 */
export function endOfMakers({ tenant, makers }: Made): RawBuilder<Date | null> {
  return sql<Date | null>`(
    select case
        when count(*) < cardinality(${makers}) or bool_or(m.revoked_at is not null) then timestamptz '-infinity'
        else min(least(m.expires_at, case when m.secret_hash is null then ${confirmedUntil} end))
      end
      from oauth_client m where m.tenant = ${tenant} and m.client_id = any(${makers}))`;
}

/** The scopes of a credential that all of its makers have. Managing the history includes reading it. */
export function scopesWithin(scopes: RawBuilder<unknown>, { tenant, makers }: Made): RawBuilder<string[]> {
  return sql<string[]>`array(
    select s.scope from unnest(${scopes}) with ordinality s (scope, place)
      where not exists (
        select from oauth_client m where m.tenant = ${tenant} and m.client_id = any(${makers}) and s.scope <> all(m.scopes)
          and not (s.scope = 'changelog.changelog_read' and 'changelog.changelog_manage' = any(m.scopes)))
      order by s.place)`;
}

/** The parts of the restrictions of a credential's makers, then its own; null without any. */
export function restrictionWithin(own: RawBuilder<unknown>, { tenant, makers }: Made): RawBuilder<unknown> {
  return sql`(
    select jsonb_agg(p.part order by p.maker, p.place) from (
      select array_position(${makers}, m.client_id) as maker, e.place, e.part
        from oauth_client m cross join lateral jsonb_array_elements(m.restriction) with ordinality e (part, place)
        where m.tenant = ${tenant} and m.client_id = any(${makers})
      union all select cardinality(${makers}) + 1, e.place, e.part
        from jsonb_array_elements(${own}) with ordinality e (part, place)) p)`;
}

const time = (at: RawBuilder<unknown>) => sql`to_char(${at} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/**
 * What lists show of clients and keys alike, as arguments of json_build_object. `of` is the row: `c` of a client or `k`
 * of a key, and `maker` the client that made it.
 */
export function shownMembers(of: 'c' | 'k', made: Made): RawBuilder<unknown> {
  const column = (name: string) => sql.ref(`${of}.${name}`);
  const end = endOfMakers(made);
  const maker = sql`(${made.makers})[cardinality(${made.makers})]`;
  return sql`
    'name', ${column('name')},
    'scopes', ${scopesWithin(column('scopes'), made)},
    'restriction', ${restrictionWithin(column('restriction'), made)},
    'madeBy', case when cardinality(${made.makers}) > 0 then json_build_object('client', ${maker}, 'name', (
      select m.name from oauth_client m where m.tenant = ${made.tenant} and m.client_id = ${maker}),
      'issuer', ${column('issuer')}, 'subject', ${column('subject')}) end,
    'state', case
      when ${column('revoked_at')} is not null then 'revoked'
      when ${column('expires_at')} <= statement_timestamp() then 'expired'
      when ${end} <= statement_timestamp() then 'ended'
      else 'active' end,
    'createdAt', ${time(column('created_at'))},
    'expiresAt', ${time(column('expires_at'))},
    'revokedAt', ${time(column('revoked_at'))},
    'usedAt', ${time(column('used_at'))},
    'usedAddress', ${column('used_address')}`;
}

/** The clients by which a client was made. */
export function makersOfClient(tenant: string): Made {
  return { tenant, makers: sql`coalesce(c.makers, '{}')` };
}
