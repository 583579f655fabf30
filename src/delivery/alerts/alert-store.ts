import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import { type AlertState, nothingCounted } from './alert-state.ts';

export async function findCounted(db: Connection, tenant: string, subscription: string): Promise<AlertState> {
  const row = await db
    .selectFrom('delivery_alert')
    .select('counted')
    .where(({ and }) => and({ tenant, subscription }))
    .executeTakeFirst();
  return row === undefined
    ? nothingCounted
    : { ...nothingCounted, ...(JSON.parse(row.counted) as Partial<AlertState>) };
}

export async function storeCounted(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  state: AlertState,
): Promise<void> {
  const counted = JSON.stringify(state);
  await transaction
    .insertInto('delivery_alert')
    .values({ tenant, subscription, counted })
    .onConflict((conflict) => conflict.columns(['tenant', 'subscription']).doUpdateSet({ counted }))
    .execute();
}

interface DeliveryAlertTable {
  tenant: string;
  subscription: string;
  counted: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    delivery_alert: DeliveryAlertTable;
  }
}
