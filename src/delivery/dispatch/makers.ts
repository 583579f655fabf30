import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { stopSubscription } from '../subscriptions/store.ts';

/** Whether a client still has the scopes to deliver. */
export type MayDeliver = (tenant: string, clientId: string) => Promise<boolean>;

/** Tenants per statement. */
const maxTenants = 200;

/** Pauses the subscriptions of these tenants whose maker lost the required scopes. */
export async function pauseOrphans(db: Database, tenants: readonly string[], mayDeliver: MayDeliver): Promise<void> {
  for (let first = 0; first < tenants.length; first += maxTenants) {
    const running = await readRunning(db, tenants.slice(first, first + maxTenants));
    const allowed = new Map<string, Promise<boolean>>();
    for (const { tenant, id, maker } of running) {
      const may = await allowed.getOrInsertComputed(maker, () => mayDeliver(tenant, maker));
      if (!may) await stopSubscription(db, tenant, id, { state: 'paused', reason: 'maker' });
    }
  }
}

async function readRunning(
  db: Database,
  tenants: readonly string[],
): Promise<{ tenant: string; id: string; maker: string }[]> {
  const { rows } = await sql<{ tenant: string; id: string; maker: string }>`
    select s.tenant, s.id, s.maker
      from subscription s join subscription_state t on t.tenant = s.tenant and t.subscription = s.id
      where s.tenant = any (${tenants}::text[]) and t.state in ('active', 'retrying')`.execute(db);
  return rows;
}
