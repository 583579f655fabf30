import { sql } from 'kysely';
import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Database } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant, tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { dropParked } from '../subscriptions/store.ts';
import type { Dispatcher } from './dispatcher.ts';

/** Days for which attempts and parked changes are kept. */
export const retentionDays = { attempts: 7, parked: 30 };

// Milliseconds.
const dropInterval = 60 * 60_000;

const isOld = (column: string, days: number) => `${column} < statement_timestamp() - interval '${days} days'`;

/** Deletes expired attempts and parked changes of all tenants. */
export async function deleteExpired(db: Database): Promise<void> {
  const attempts = isOld('at', retentionDays.attempts);
  await forEachTenant(await tenantsWith(db, { table: 'delivery_attempt', condition: attempts }), (tenant) =>
    db
      .deleteFrom('delivery_attempt')
      .where('tenant', '=', tenant)
      .where(sql<boolean>`${sql.raw(attempts)}`)
      .execute(),
  );
  const parked = isOld('parked_at', retentionDays.parked);
  await forEachTenant(await tenantsWith(db, { table: 'delivery_waiting', condition: parked }), async (tenant) => {
    const rows = await db
      .selectFrom('delivery_waiting')
      .select('subscription')
      .distinct()
      .where('tenant', '=', tenant)
      .where(sql<boolean>`${sql.raw(parked)}`)
      .execute();
    const before = sql<Date>`statement_timestamp() - ${retentionDays.parked} * interval '1 day'`;
    for (const { subscription } of rows) {
      await inTransaction(db, (transaction) => dropParked(transaction, tenant, subscription, before));
    }
  });
}

/** Delivers while the server listens, if this process has a dispatcher. */
export async function deliveryUpkeep(
  app: HttpServer,
  { db, dispatcher, findTenants }: { db: Database; dispatcher: Dispatcher | undefined; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    async begin() {
      dispatcher?.start(findTenants);
    },
    upkeep: [{ what: 'the upkeep of deliveries', every: dropInterval, work: () => deleteExpired(db) }],
    end: () => dispatcher?.close(),
  });
}
