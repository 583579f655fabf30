import { AnnalsError } from '../core/errors.ts';
import type { ProviderError } from './port.ts';

/**
 * The error that a client gets when a provider did not answer a call (contract 7). It never contains the provider's own
 * text. The caller adds whose key or model was refused.
 */
export function errorOfCall(error: ProviderError): AnnalsError {
  const answer = (type: AnnalsError['type'], message: string, headers: Record<string, string> = {}) =>
    new AnnalsError(type, message, { cause: error, headers });

  switch (error.fault) {
    case 'rate_limited':
    case 'quota_exhausted': {
      const headers: Record<string, string> = error.retryAfter === undefined ? {} : { 'Retry-After': error.retryAfter };
      return answer('rate_limit_exceeded', 'The provider has had too many requests.', headers);
    }
    case 'key_refused':
      return answer('validation_violation', 'The provider refuses the key.');
    case 'model_unknown':
    case 'request_refused':
      return answer('validation_violation', 'The provider refuses the request.');
    case 'context_length_exceeded':
      return answer('validation_violation', 'The provider refuses the request: it is longer than the model takes.');
    case 'content_filtered':
      // A refused request has a status. An answer that the filter emptied has none.
      return error.status === undefined
        ? answer('provider_error', 'The provider gave no usable answer: its filter held it back.')
        : answer('validation_violation', 'The provider refuses the request: its filter does not let it pass.');
    case 'timeout':
      return answer('provider_timeout', 'The provider did not answer in time.');
    case 'unreachable':
      return answer('provider_error', 'The provider cannot be reached.');
    case 'unavailable':
    case 'broken':
    case 'aborted':
      return answer('provider_error', 'The provider gave no usable answer.');
  }
}
