import { Type } from 'typebox';
import { tenantPattern } from '../db/tenants.ts';

/** Whether the text can name a tenant; the pattern holds on every path (contract: authentication). */
export function isTenantName(text: string): boolean {
  return tenantPattern.test(text);
}

/** The `{tenant}` of every path, for the route's `params` schema. */
export const TenantName = Type.String({
  pattern: tenantPattern.source,
  description: 'The tenant: lower case, a letter first.',
  examples: ['demo'],
});
