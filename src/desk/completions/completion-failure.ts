import { AnnalsError } from '../../core/errors.ts';
import { errorOfCall } from '../../providers/call-error.ts';
import type { ProviderError } from '../../providers/port.ts';

/**
 * The error that a client gets when a call has no answer. For a refused token it names the configuration item that the
 * token is from. `item` is undefined for the shared token.
 */
export function failureOfCompletion(error: ProviderError, item: string | undefined): AnnalsError {
  if (error.fault !== 'key_refused') return errorOfCall(error);
  const refused =
    item === undefined
      ? { field: 'providerApiToken', message: 'is not set, and the provider refuses the shared token of the service' }
      : { field: item, message: 'is refused by the provider' };
  return new AnnalsError('validation_violation', 'The provider refuses the token.', {
    cause: error,
    details: [refused],
  });
}
