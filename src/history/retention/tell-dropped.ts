import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { findHold } from '../../postgres/tenants/held-tenant.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { rangesOf, writeReceipt } from '../../recording/receipt-store.ts';
import { lastPosition } from '../feed/positions.ts';
import { entriesOfRow } from '../positions/entries-of-row.ts';

/** Rows of positions of one portion, each of up to 4,096 positions. */
const rowsOfPortion = 5;
const maxPlacesOfRow = 4_096;

/** What receipts say of a tenant, and the round that is under way. */
interface Told {
  /** All entries from before this time, up to position `until`, have receipts. */
  readonly horizon: number;
  readonly until: number;
  /** The round tells of the entries from before this time, up to position `nextUntil`; null: none is under way. */
  readonly nextHorizon: number | null;
  readonly nextUntil: number | null;
  /** The position up to which the round has come. */
  readonly reached: number;
}

/** What a portion of a round looks for. */
interface Portion {
  readonly told: Pick<Told, 'horizon' | 'until'>;
  readonly round: Pick<Told, 'horizon' | 'until'>;
  /** The position behind which it begins. */
  readonly after: number;
}

/**
 * Writes receipts for the entries from before a tenant's horizon that have none, a portion of them in a short transaction. Returns
 * whether some are left. To be called before their rows are dropped. A call goes on where the last one ended.
 */
export async function tellPortion(db: Database, tenant: string, horizon: number, now: number): Promise<boolean> {
  return await inTransaction(
    db,
    async (transaction) => {
      if ((await findHold(transaction, tenant)) !== undefined) return false;
      const { nextHorizon, nextUntil, reached, ...told } = await lockTold(transaction, tenant);
      const until = nextUntil ?? (await lastPosition(transaction, tenant)).position;
      const round = { horizon: nextHorizon ?? horizon, until };
      if (round.horizon === told.horizon && round.until === told.until) return false;
      // With the same horizon, only positions that are new can be without a receipt.
      const after = round.horizon === told.horizon ? Math.max(told.until, reached) : reached;
      const { positions, end } = await readExpired(transaction, tenant, { told, round, after });
      if (positions.length > 0) {
        await writeReceipt(transaction, tenant, {
          what: 'retention',
          positions: rangesOf(positions),
          at: new Date(now).toISOString(),
          by: 'annals',
          before: new Date(round.horizon).toISOString(),
        });
      }
      const isMore = end !== undefined && end < until;
      const row = isMore
        ? sql`next_horizon = ${round.horizon}::bigint, next_until = ${until}::bigint, reached = ${end}::bigint`
        : sql`horizon = ${round.horizon}::bigint, until = ${until}::bigint, next_horizon = null, next_until = null, reached = 0`;
      await sql`update change_retention_told set ${row} where tenant = ${tenant}`.execute(transaction);
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
  { told, round, after }: Portion,
): Promise<{ positions: number[]; end: number | undefined }> {
  // Rows end at multiples of 4,096 positions. To know the length of a row its arrays would have to be read.
  const { rows } = await sql<{ positions: number[]; end: number | null }>`
    with portion as materialized (
      select p.* from change_position p
        where p.tenant = ${tenant} and p.oldest < ${round.horizon}::bigint and p.first <= ${round.until}::bigint
          and p.first >= coalesce((
            select first from change_position
              where tenant = ${tenant} and first <= ${after}::bigint + 1 order by first desc limit 1), 1)
          and (p.newest >= ${told.horizon}::bigint or p.first > ${told.until - maxPlacesOfRow}::bigint)
        order by p.first limit ${rowsOfPortion}::integer
    )
    select coalesce((select json_agg(place.position order by place.position) from (
             select p.first + entry.number - 1 as position, entry.at
               from portion p cross join lateral ${entriesOfRow} as entry
             ) place
             where place.at >= 0 and place.at < ${round.horizon}::bigint
               and place.position > ${after}::bigint and place.position <= ${round.until}::bigint
               and (place.at >= ${told.horizon}::bigint or place.position > ${told.until}::bigint)), '[]') as positions,
           (select case when count(*) = ${rowsOfPortion}::integer then max(first + cardinality(fingerprints) - 1) end from portion) as end`.execute(
    transaction,
  );
  return { positions: rows[0]?.positions ?? [], end: rows[0]?.end ?? undefined };
}
