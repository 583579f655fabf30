import type { ErrorDetail } from '../../core/errors.ts';
import { faultsOfHeaders, tenantHeaders } from '../../providers/tenant-headers.ts';

/** Additional headers of a subscription's requests. */
export const TargetHeaders = tenantHeaders('TargetHeaders', '`webhook-…`');

export function faultsOfTargetHeaders(headers: Readonly<Record<string, string>> = {}): ErrorDetail[] {
  return faultsOfHeaders(headers, { field: 'target.headers', own: /^(?:idempotency-key$|webhook-)/ });
}
