import { AnnalsError } from '../errors.ts';
import { errorOfCall } from '../providers/call-error.ts';
import type { ProviderError } from '../providers/port.ts';

/** Whose token a call went out with. */
export type TokenOwner = 'own' | 'shared';

const refusedToken = {
  own: 'is refused by the provider',
  shared: 'is not set, and the provider refuses the shared token of the service',
};

/** What a client is told of a completion without an answer: a refused token is its providerApiToken to set. */
export function failureOfCompletion(error: ProviderError, owner: TokenOwner): AnnalsError {
  if (error.fault !== 'key_refused') return errorOfCall(error);
  return new AnnalsError('validation_violation', 'The provider refuses the token.', {
    cause: error,
    details: [{ field: 'providerApiToken', message: refusedToken[owner] }],
  });
}
