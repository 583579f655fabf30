import { Type } from 'typebox';
import { tenantPattern } from '../postgres/tenants/tenants.ts';

/** Whether the text can name a tenant; the pattern holds on every path (contract: authentication). */
export function isTenantName(text: string): boolean {
  return tenantPattern.test(text);
}

/** The `{tenant}` of every path, for the route's `params` schema; the same rule in the words of the specification. */
export const TenantName = Type.String({
  $id: 'Tenant',
  pattern: '^[a-z][a-z0-9]+$',
  maxLength: 63,
  description: 'The tenant: lower case, a letter first.',
  examples: ['demo'],
});
