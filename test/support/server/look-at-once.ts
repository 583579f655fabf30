import type { Database } from '../../../src/db/database.ts';
import { type FindTenants, tenantsWith } from '../../../src/db/tenants/tenants-with.ts';

/** Looks for work at each call, where a service shares the looks of all its processes. */
export function lookAtOnce(db: Database): FindTenants {
  return (work) => tenantsWith(db, work);
}
