import type { Database } from '../../../src/postgres/database.ts';
import { type FindTenants, tenantsWith } from '../../../src/postgres/tenants/tenants-with.ts';

/** Looks for work at each call, where a service shares the looks of all its processes. */
export function lookAtOnce(db: Database): FindTenants {
  return (work) => tenantsWith(db, work);
}
