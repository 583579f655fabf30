import type { ErrorDetail } from '../../core/errors.ts';
import { faultsOfHeaders, tenantHeaders } from '../../providers/tenant-headers.ts';

/** Headers that a subscription adds to its requests. */
export const TargetHeaders = tenantHeaders('TargetHeaders', '`webhook-…`');

/** What is wrong with the headers of a target. */
export function faultsOfTargetHeaders(headers: Readonly<Record<string, string>> = {}): ErrorDetail[] {
  return faultsOfHeaders(headers, { field: 'target.headers', own: /^(?:idempotency-key$|webhook-)/ });
}
