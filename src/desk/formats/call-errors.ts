import { AnnalsError } from '../../core/errors.ts';
import { errorOfCall } from '../../providers/call-error.ts';
import { ProviderError, type VendorHeaders } from '../../providers/port.ts';
import { refusedKey } from '../completions/complete.ts';
import { QuotaReserved } from '../completions/refusals.ts';

/** The tenant's quota, or the credit of its account at the vendor. */
export const usedUp = 'insufficient_quota';

const codeOfFault: Readonly<Partial<Record<ProviderError['fault'], string>>> = {
  quota_exhausted: usedUp,
  context_length_exceeded: 'context_length_exceeded',
  content_filtered: 'content_filter',
  model_unknown: 'model_not_found',
  key_refused: 'provider_key_refused',
};

const noRetry = { 'x-should-retry': 'false' };

/**
 * The error of a call for clients of a provider's format. A used-up quota is 429 without retry; one reserved by others is 429 with
 * Retry-After. A call that may have cost something is not retried either; one that `isFree` cannot have.
 */
export function errorOfAnswer(
  error: unknown,
  keyItem: string | undefined,
  { isFree = false }: { readonly isFree?: boolean } = {},
): unknown {
  if (error instanceof ProviderError) {
    const failure = errorOfCall(error);
    const { vendor } = error;
    const details = error.fault === 'key_refused' ? [refusedKey(keyItem)] : [];
    const mayPass = (isFree || error.usage === 'none') && error.fault !== 'quota_exhausted';
    const vendorHeaders = passedHeaders(error.vendorHeaders, keyItem !== undefined);
    const headers = { ...vendorHeaders, ...failure.headers, ...(mayPass ? {} : noRetry) };
    if (vendor !== undefined && keyItem !== undefined && error.fault !== 'key_refused') {
      const { message, type, param, code } = vendor;
      return new AnnalsError(failure.type, message, {
        cause: error,
        headers,
        details: param === null ? [] : [{ field: param, message }],
        passed: { type, code },
      });
    }
    const code = codeOfFault[error.fault];
    return new AnnalsError(failure.type, failure.message, { cause: error, headers, details, code });
  }
  if (error instanceof QuotaReserved) {
    return new AnnalsError('rate_limit_exceeded', error.message, { cause: error, headers: error.headers });
  }
  if (error instanceof AnnalsError && error.type === 'quota_exceeded') {
    return new AnnalsError('rate_limit_exceeded', error.message, { cause: error, headers: noRetry, code: usedUp });
  }
  // Clients of these formats retry a 409, which would never succeed.
  if (error instanceof AnnalsError && error.type === 'conflict_resource') {
    return new AnnalsError(error.type, error.message, { cause: error, headers: noRetry, details: error.details });
  }
  return error;
}

/** The limits that a vendor tells are those of its key: with the shared token they are not passed on. */
export function passedHeaders(headers: VendorHeaders, isOwn: boolean): VendorHeaders {
  return isOwn
    ? headers
    : Object.fromEntries(Object.entries(headers).filter(([name]) => !/^(?:x|anthropic)-ratelimit-/.test(name)));
}

/** The message of an error, with the field that it is about. */
export function messageWithDetail({ message, details: [detail] }: AnnalsError): string {
  const isComplete = detail === undefined || detail.message === message;
  return isComplete ? message : `${message} ${detail.field}: ${detail.message}.`;
}
