import { type RawBuilder, sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Connection, Database } from '../../postgres/database.ts';
import { dropRows } from '../../postgres/tenants/tenants.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';

/** Days. */
export const callRetentionDays = 90;

/** US dollars as a text with all digits, from pico-dollars. Multiplies, because a division would lose digits. */
export function dollarsText(pico: RawBuilder<unknown>): RawBuilder<string> {
  return sql`trim_scale(${pico} * 0.000000000001::numeric)::text`;
}

/** The members of a call, as expressions. Members without a value are not shown, except the cost. */
const members: Readonly<Record<string, RawBuilder<unknown>>> = {
  at: sql`to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
  operation: sql`operation`,
  token: sql`token`,
  provider: sql`provider`,
  model: sql`model`,
  client: sql`client`,
  agent: sql`agent`,
  user: sql`end_user`,
  inputTokens: sql`input_tokens`,
  cachedTokens: sql`cached_tokens`,
  cacheWriteTokens: sql`cache_write_tokens`,
  hourCacheWriteTokens: sql`hour_cache_write_tokens`,
  outputTokens: sql`output_tokens`,
  reasoningTokens: sql`reasoning_tokens`,
  firstTokenMs: sql`first_token_ms`,
  durationMs: sql`duration_ms`,
  finishReason: sql`finish_reason`,
  cause: sql`cause`,
  priceFrom: sql`price_from`,
};

const cost = sql`coalesce(to_json(${dollarsText(sql`cost`)})::text, 'null')`;

const document = sql<string>`concat('{"id":', to_json(id), ${sql.join(
  Object.entries(members).map(([name, value]) => sql`${sql.lit(`,"${name}":`)} || to_json(${value})`),
)}, ',"costUsd":', ${cost}, '}')`;

/** The calls of a tenant, for lists. */
export function callRows(tenant: string): DocumentRows {
  const from = sql`(select tenant, id, ${document} as document, (${document})::jsonb as fields
    from call_record where tenant = ${tenant}) call_record`;
  return { from, where: sql`tenant = ${tenant}` };
}

// An id starts with the milliseconds: 8 digits, a hyphen, 4 digits.
const milliseconds = `lpad(to_hex((extract(epoch from statement_timestamp() - interval '${callRetentionDays} days') * 1000)::bigint), 12, '0')`;
const old = `not unsummed and id < overlay(${milliseconds} placing '-' from 9 for 0)`;

/** Calls not yet in the totals. */
export const unsummedCalls = { table: 'call_record', condition: 'unsummed' } as const satisfies TenantWork;

/** Adds all finished calls to the tenant's totals. Call it before reading them. */
export async function sumCalls(db: Connection, tenant: string): Promise<void> {
  await sql`select call_sum_records(${tenant})`.execute(db);
}

/** Deletes expired calls of all tenants in batches. */
export async function dropOldCalls(db: Database): Promise<void> {
  await dropRows(db, { table: 'call_record', condition: old });
}
