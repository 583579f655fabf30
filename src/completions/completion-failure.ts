import { AnnalsError } from '../errors.ts';
import { errorOfCall } from '../providers/call-error.ts';
import type { ProviderError } from '../providers/port.ts';

/** The owner of the token that a call uses. */
export type TokenOwner = 'own' | 'shared';

const refusedToken = {
  own: 'is refused by the provider',
  shared: 'is not set, and the provider refuses the shared token of the service',
};

/** The error that a client gets when a call has no answer. For a refused token it names the field providerApiToken. */
export function failureOfCompletion(error: ProviderError, owner: TokenOwner): AnnalsError {
  if (error.fault !== 'key_refused') return errorOfCall(error);
  return new AnnalsError('validation_violation', 'The provider refuses the token.', {
    cause: error,
    details: [{ field: 'providerApiToken', message: refusedToken[owner] }],
  });
}
