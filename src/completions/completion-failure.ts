import { AnnalsError } from '../errors.ts';
import type { ProviderError } from '../providers/port.ts';

/** Whose token a call went out with. */
export type TokenOwner = 'own' | 'shared';

const refusedToken = {
  own: 'is refused by the provider',
  shared: 'is not set, and the provider refuses the shared token of the service',
};

/**
 * What a client is told of a call that the provider did not answer (contract: completions). The provider's own text
 * is never among it.
 */
export function failureOfCompletion(error: ProviderError, owner: TokenOwner): AnnalsError {
  const answer = (type: AnnalsError['type'], message: string, headers?: Record<string, string>) =>
    new AnnalsError(type, message, { cause: error, ...(headers === undefined ? {} : { headers }) });

  switch (error.fault) {
    case 'key_refused':
      return new AnnalsError('validation_violation', 'The provider refuses the token.', {
        cause: error,
        details: [{ field: 'providerApiToken', message: refusedToken[owner] }],
      });
    case 'rate_limited': {
      const headers = error.retryAfter === undefined ? undefined : { 'Retry-After': error.retryAfter };
      return answer('rate_limit_exceeded', 'The provider has had too many requests.', headers);
    }
    case 'model_unknown':
    case 'request_refused':
      return answer('validation_violation', 'The provider refuses the request.');
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
