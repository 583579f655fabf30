import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import './tables.ts';

/** A subscription in the operator's list. Of its target, only the type. */
export interface OperatorLine {
  readonly tenant: string;
  readonly id: string;
  /** JSON text. */
  readonly text: string;
}

const pageSize = 500;

/** A page of the subscriptions of a tenant, or of all tenants, by tenant and id. */
export async function listForOperator(
  db: Database,
  tenant: string | undefined,
  after: { readonly tenant: string; readonly id: string } | undefined,
): Promise<OperatorLine[]> {
  const isTenant = tenant === undefined ? sql`true` : sql`s.tenant = ${tenant}`;
  const { rows } = await sql<OperatorLine>`
    select s.tenant, s.id, json_strip_nulls(json_build_object(
        'tenant', s.tenant, 'id', s.id, 'name', s.document::json -> 'name', 'type', s.document::json -> 'target' -> 'type',
        'state', t.state, 'reason', t.reason, 'pending', t.waiting, 'parked', t.parked,
        'lastDelivery', t.last_delivery::json, 'lastError', t.last_error::json))::text as text
      from subscription s join subscription_state t on t.tenant = s.tenant and t.subscription = s.id
      where ${isTenant}
        and (s.tenant, s.id) > (${after?.tenant ?? ''}::text collate "C", ${after?.id ?? ''}::text collate "C")
      order by s.tenant, s.id limit ${pageSize}`.execute(db);
  return rows;
}
