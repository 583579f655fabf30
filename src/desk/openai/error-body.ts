import type { AnnalsError } from '../../core/errors.ts';
import { messageWithDetail, usedUp } from '../formats/call-errors.ts';

/** An error in the first provider's format. */
export interface OpenaiError {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

const codes: Readonly<Partial<Record<AnnalsError['type'], string>>> = {
  rate_limit_exceeded: 'rate_limit_exceeded',
  price_unknown: 'price_unknown',
  insufficient_permissions: 'insufficient_permissions',
  payload_too_large: 'payload_too_large',
};

export function openaiError(error: AnnalsError): OpenaiError {
  const { type, status, message, details, code, passed } = error;
  const [detail] = details;
  if (passed !== undefined) {
    const { type: ownType, code: ownCode } = passed;
    return { error: { message, type: ownType ?? typeOf(status), param: detail?.field ?? null, code: ownCode } };
  }
  return {
    error: {
      message: messageWithDetail(error),
      type: code === usedUp ? usedUp : typeOf(status),
      param: detail?.field ?? null,
      code: code ?? (detail?.field === 'model' && status === 404 ? 'model_not_found' : (codes[type] ?? null)),
    },
  };
}

export function invalidKey(message: string): OpenaiError {
  return { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_api_key' } };
}

function typeOf(status: number): string {
  if (status === 429) return 'rate_limit_error';
  if (status === 403) return 'permission_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
