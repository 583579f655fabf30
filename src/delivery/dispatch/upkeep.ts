import { sql } from 'kysely';
import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Database } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant, tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { dropParked } from '../subscriptions/store.ts';
import type { Dispatcher } from './dispatcher.ts';

/** Days that attempts, and changes that could not be delivered, are kept. */
export const keptDays = { attempts: 7, parked: 30 };

// Milliseconds.
const dropEvery = 60 * 60_000;

const isOld = (column: string, days: number) => `${column} < statement_timestamp() - interval '${days} days'`;

/** Deletes attempts and parked changes that are old, of all tenants. */
export async function dropOld(db: Database): Promise<void> {
  const attempts = isOld('at', keptDays.attempts);
  await forEachTenant(await tenantsWith(db, { table: 'delivery_attempt', condition: attempts }), (tenant) =>
    db
      .deleteFrom('delivery_attempt')
      .where('tenant', '=', tenant)
      .where(sql<boolean>`${sql.raw(attempts)}`)
      .execute(),
  );
  const parked = isOld('parked_at', keptDays.parked);
  await forEachTenant(await tenantsWith(db, { table: 'delivery_waiting', condition: parked }), async (tenant) => {
    const rows = await db
      .selectFrom('delivery_waiting')
      .select('subscription')
      .distinct()
      .where('tenant', '=', tenant)
      .where(sql<boolean>`${sql.raw(parked)}`)
      .execute();
    const before = sql<Date>`statement_timestamp() - ${keptDays.parked} * interval '1 day'`;
    for (const { subscription } of rows) {
      await inTransaction(db, (transaction) => dropParked(transaction, tenant, subscription, before));
    }
  });
}

/** Delivers while the server listens, unless this process is not to. */
export async function deliveryUpkeep(
  app: HttpServer,
  { db, dispatcher, findTenants }: { db: Database; dispatcher: Dispatcher | undefined; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    async begin() {
      dispatcher?.start(findTenants);
    },
    upkeep: [{ what: 'the upkeep of deliveries', every: dropEvery, work: () => dropOld(db) }],
    end: () => dispatcher?.close(),
  });
}
