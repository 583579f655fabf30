import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { findHold } from '../../postgres/tenants/held-tenant.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { rangesOf, writeReceipt } from '../../recording/receipts/receipt-store.ts';
import { isFilling } from '../positions/fill-positions.ts';
import { lastPosition } from '../positions/position-store.ts';

/** Rows of positions of one portion, each of up to 4,096 positions. */
const rowsOfPortion = 5;
const maxPlacesOfRow = 4_096;

interface Told {
  /** All entries from before this time, up to position `until`, have receipts. */
  readonly horizon: number;
  readonly until: number;
  /** What is being told at the moment, and up to where it was. */
  readonly nextHorizon: number | null;
  readonly nextUntil: number | null;
  readonly reached: number;
}

/**
 * Writes receipts for the entries from before a tenant's horizon that have none, a portion of them in a short transaction. Returns
 * whether some are left. To be called before their rows are dropped. A call goes on where the last one ended.
 */
export async function tellPortion(db: Database, tenant: string, horizon: number, now: number): Promise<boolean> {
  return await inTransaction(
    db,
    async (transaction) => {
      if ((await findHold(transaction, tenant)) !== undefined || (await isFilling(transaction, tenant))) return false;
      const told = await lockTold(transaction, tenant);
      const next = told.nextHorizon ?? horizon;
      const until = told.nextUntil ?? (await lastPosition(transaction, tenant)).position;
      if (next === told.horizon && until === told.until) return false;
      const reached = next === told.horizon ? Math.max(told.until, told.reached) : told.reached;
      const found = await readExpired(transaction, tenant, { ...told, next, nextUntil: until, reached });
      if (found.positions.length > 0) {
        const [at, before] = [now, next].map((time) => new Date(time).toISOString());
        const positions = rangesOf(found.positions);
        await writeReceipt(transaction, tenant, { what: 'retention', positions, at: at ?? '', by: 'annals', before });
      }
      const isMore = found.end !== undefined && found.end < until;
      await (isMore
        ? sql`update change_retention_told set next_horizon = ${next}::bigint, next_until = ${until}::bigint, reached = ${found.end}::bigint
                where tenant = ${tenant}`
        : sql`update change_retention_told
                set horizon = ${next}::bigint, until = ${until}::bigint, next_horizon = null, next_until = null, reached = 0
                where tenant = ${tenant}`
      ).execute(transaction);
      return isMore;
    },
    { retries: 3 },
  );
}

async function lockTold(transaction: DatabaseTransaction, tenant: string): Promise<Told> {
  await sql`insert into change_retention_told (tenant) values (${tenant}) on conflict (tenant) do nothing`.execute(
    transaction,
  );
  const { rows } = await sql<Told>`
    select horizon, until, next_horizon as "nextHorizon", next_until as "nextUntil", reached
      from change_retention_told where tenant = ${tenant} for update`.execute(transaction);
  const [told] = rows;
  if (told === undefined) throw new Error('a row that was inserted is not there');
  return told;
}

/** The positions of a portion, and where the portion ends; no end: there are no more rows. */
async function readExpired(
  transaction: DatabaseTransaction,
  tenant: string,
  told: { horizon: number; until: number; next: number; nextUntil: number; reached: number },
): Promise<{ positions: number[]; end: number | undefined }> {
  const { horizon, until, next, nextUntil, reached } = told;
  // Rows end at multiples of 4,096 positions. To know the length of a row its arrays would have to be read.
  const { rows } = await sql<{ positions: number[]; end: number | null }>`
    with portion as materialized (
      select p.first, p.ats from change_position p
        where p.tenant = ${tenant} and p.oldest < ${next}::bigint and p.first <= ${nextUntil}::bigint
          and p.first >= coalesce((
            select first from change_position
              where tenant = ${tenant} and first <= ${reached}::bigint + 1 order by first desc limit 1), 1)
          and (p.newest >= ${horizon}::bigint or p.first > ${until - maxPlacesOfRow}::bigint)
        order by p.first limit ${rowsOfPortion}::integer
    )
    select coalesce((select json_agg(place.position order by place.position) from (
             select portion.first + entry.number - 1 as position, entry.at
               from portion cross join lateral unnest(portion.ats) with ordinality as entry (at, number)
             ) place
             where place.at >= 0 and place.at < ${next}::bigint
               and place.position > ${reached}::bigint and place.position <= ${nextUntil}::bigint
               and (place.at >= ${horizon}::bigint or place.position > ${until}::bigint)), '[]') as positions,
           (select case when count(*) = ${rowsOfPortion}::integer then max(first + cardinality(ats) - 1) end from portion) as end`.execute(
    transaction,
  );
  return { positions: rows[0]?.positions ?? [], end: rows[0]?.end ?? undefined };
}
