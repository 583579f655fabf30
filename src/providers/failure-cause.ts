import { AnnalsError, type ErrorType } from '../core/errors.ts';
import { ProviderError, type ProviderFault } from './port.ts';

/** Why a request to a model failed: the complete list of contract 8. */
export const failureCauses = [
  'quota_exhausted',
  'rate_limited',
  'context_length_exceeded',
  'content_filtered',
  'authentication',
  'model_not_found',
  'unreachable',
  'timeout',
  'bad_answer',
  'cancelled',
] as const;
export type FailureCause = (typeof failureCauses)[number];

const causeOfFault: Readonly<Record<ProviderFault, FailureCause>> = {
  key_refused: 'authentication',
  model_unknown: 'model_not_found',
  rate_limited: 'rate_limited',
  quota_exhausted: 'quota_exhausted',
  context_length_exceeded: 'context_length_exceeded',
  content_filtered: 'content_filtered',
  request_refused: 'bad_answer',
  unavailable: 'bad_answer',
  broken: 'bad_answer',
  unreachable: 'unreachable',
  timeout: 'timeout',
  aborted: 'cancelled',
};

// The causes of the service's own errors, before or between calls.
const causeOfType: Readonly<Partial<Record<ErrorType, FailureCause>>> = {
  quota_exceeded: 'quota_exhausted',
  price_unknown: 'quota_exhausted',
  rate_limit_exceeded: 'rate_limited',
  insufficient_permissions: 'authentication',
  validation_violation: 'authentication',
  provider_error: 'bad_answer',
  provider_timeout: 'timeout',
  service_unavailable: 'timeout',
  resource_not_found: 'cancelled',
  conflict_resource: 'cancelled',
};

/** The cause of a thrown error; undefined where the service itself is at fault. */
export function causeOf(error: unknown): FailureCause | undefined {
  if (error instanceof ProviderError) return causeOfFault[error.fault];
  if (!(error instanceof AnnalsError)) return undefined;
  return causeOf(error.cause) ?? causeOfType[error.type];
}
