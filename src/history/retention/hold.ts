import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { type Hold, lockHold } from '../../postgres/tenants/tenants.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { writeReceipt } from '../../recording/receipt-store.ts';
import { recordDocumentChange } from '../../recording/record-document-change.ts';

/** Reasons of a hold. Not free text: the receipt can never be erased. */
export const holdReasons = ['lawsuit', 'investigation', 'audit', 'other'] as const;
type HoldReason = (typeof holdReasons)[number];

const holdEntity = 'annals-hold';
const retries = 20;

/**
 * Puts a hold on a tenant. When this returns, nothing of it is dropped or erased any more, and its horizon does not
 * move. Waits for a portion that is being dropped. A second call changes nothing and returns the existing hold.
 */
export async function holdTenant(db: Database, tenant: string, reason: HoldReason, now: number): Promise<Hold> {
  const work = async (transaction: DatabaseTransaction) => {
    const known = await lockHold(transaction, tenant);
    if (known !== undefined) return known;
    const hold = { since: now, reason };
    await sql`
      insert into change_retention as r (tenant, horizon, held_since, held_reason)
        values (${tenant}, 0, ${now}::bigint, ${reason})
        on conflict (tenant) do update set held_since = excluded.held_since, held_reason = excluded.held_reason`.execute(
      transaction,
    );
    await note(transaction, tenant, now, { what: 'hold', reason, after: documentOf(hold) });
    return hold;
  };
  return await inTransaction(db, work, { retries });
}

/** Ends the hold of a tenant. Throws an OperatorError if it has none. */
export async function releaseTenant(db: Database, tenant: string, now: number): Promise<void> {
  const work = async (transaction: DatabaseTransaction) => {
    const known = await lockHold(transaction, tenant);
    if (known === undefined) throw new OperatorError(`${tenant} is not on hold`);
    await sql`update change_retention set held_since = null, held_reason = null where tenant = ${tenant}`.execute(
      transaction,
    );
    await note(transaction, tenant, now, { what: 'release', reason: known.reason, before: documentOf(known) });
  };
  await inTransaction(db, work, { retries });
}

/** The change of this service's own document, and the receipt. */
async function note(
  transaction: DatabaseTransaction,
  tenant: string,
  now: number,
  { what, reason, ...documents }: { what: 'hold' | 'release'; reason: string; before?: string; after?: string },
): Promise<void> {
  const change = { entity: holdEntity, entityId: tenant, at: now, ...documents } as const;
  await recordDocumentChange(transaction, { tenant, actor: 'operator' }, change);
  const at = new Date(now).toISOString();
  await writeReceipt(transaction, tenant, { what, positions: [], at, by: 'operator', reason });
}

function documentOf({ since, reason }: Hold): string {
  return JSON.stringify({ since: new Date(since).toISOString(), reason });
}
