import { AnnalsError } from '../../core/errors.ts';
import { errorOfCall } from '../../providers/call-error.ts';
import type { ProviderError } from '../../providers/port.ts';
import { isSelfHosted, type LlmConfig } from './llm-config.ts';

/** The effect of a failed call on the client and the agent. */
export interface ChatFailure {
  readonly error: AnnalsError;
  /** Whether only the tenant can remove the cause (contract 8). Such failures count towards disabling the agent. */
  readonly isConfiguration: boolean;
}

const unreachable = 'The self-hosted server cannot be reached, or does not answer as one of its kind.';

const unknownThere = 'The self-hosted server does not know the model, or has nothing at this address.';

/** The client's error for a call without an answer. It never contains the provider's own text. */
export function failureOfChat(error: ProviderError, provider: LlmConfig['provider']): ChatFailure {
  if (provider === 'shared') return failureOfShared(error);
  if (isSelfHosted(provider) && isNoModelServer(error)) {
    return { error: new AnnalsError('provider_error', unreachable, { cause: error }), isConfiguration: true };
  }
  switch (error.fault) {
    case 'key_refused':
      return configuration(error, 'The provider refuses the key.', 'apiKey', 'is refused by the provider');
    case 'model_unknown':
      return isSelfHosted(provider)
        ? configuration(error, unknownThere, 'model', 'is not known to the server, or the address is wrong')
        : configuration(error, 'The provider does not know the model.', 'model', 'is not known to the provider');
    default:
      return { error: errorOfCall(error), isConfiguration: false };
  }
}

/** The address does not answer, or is not that of a model server. */
function isNoModelServer({ fault, status, isForeign }: ProviderError): boolean {
  if (fault === 'unreachable' || isForeign) return true;
  if (fault === 'unavailable') return status !== undefined && (status < 500 || status === 501);
  return fault === 'request_refused' && (status === 405 || status === 426);
}

/** Key and model belong to the service, so the tenant cannot remove the cause. */
function failureOfShared(error: ProviderError): ChatFailure {
  const isOurs = error.fault === 'key_refused' || error.fault === 'model_unknown';
  const message = 'The provider does not take the shared token of the service.';
  return {
    error: isOurs ? new AnnalsError('service_unavailable', message, { cause: error }) : errorOfCall(error),
    isConfiguration: false,
  };
}

function configuration(cause: ProviderError, message: string, field: 'apiKey' | 'model', fault: string): ChatFailure {
  const details = [{ field: `llmConfig.${field}`, message: fault }];
  return { error: new AnnalsError('validation_violation', message, { cause, details }), isConfiguration: true };
}

/** No secret key decrypts the stored key. For the tenant this equals a missing key. */
export function keyUnreadable(): ChatFailure {
  const details = [{ field: 'llmConfig.apiKey', message: 'can no longer be decrypted and must be re-entered' }];
  return {
    error: new AnnalsError('validation_violation', 'The key of the agent is missing.', { details }),
    isConfiguration: true,
  };
}
