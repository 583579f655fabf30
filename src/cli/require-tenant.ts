import { OperatorError } from '../core/errors.ts';
import type { Database } from '../postgres/database.ts';
import { tenantExists } from '../postgres/tenants/tenants.ts';

/** Throws an OperatorError if the tenant does not exist: a misspelt name must not look like an empty tenant. */
export async function requireNamedTenant(db: Database, tenant: string): Promise<void> {
  if (await tenantExists(db, tenant)) return;
  throw new OperatorError(`there is no tenant ${tenant}; create it with: annals tenant create ${tenant}`);
}
