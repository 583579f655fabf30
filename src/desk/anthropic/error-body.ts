import type { AnnalsError } from '../../core/errors.ts';
import { messageWithDetail } from '../formats/call-errors.ts';

/** An error in the second provider's format. */
export interface AnthropicError {
  readonly type: 'error';
  readonly error: { readonly type: string; readonly message: string };
  readonly request_id: string;
}

/** `requestId`: of the request to this service. An error of the vendor has the vendor's. */
export function anthropicError(error: AnnalsError, requestId: string): AnthropicError {
  const { status, message, passed, headers } = error;
  const type = passed?.type ?? typeOf(status);
  const text = passed === undefined ? messageWithDetail(error) : message;
  return { type: 'error', error: { type, message: text }, request_id: headers['request-id'] ?? requestId };
}

export function invalidKey(message: string, requestId: string): AnthropicError {
  return { type: 'error', error: { type: 'authentication_error', message }, request_id: requestId };
}

/** The event that ends a stream that fails. */
export function errorEvent(error: AnnalsError, requestId: string): string {
  return `event: error\ndata: ${JSON.stringify(anthropicError(error, requestId))}\n\n`;
}

function typeOf(status: number): string {
  return types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error');
}

const types: Readonly<Record<number, string>> = {
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
};
