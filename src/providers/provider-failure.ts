import { type Adapter, usageFrom } from './adapter.ts';
import type { HttpExchange } from './http-exchange.ts';
import { parsed } from './members.ts';
import { type FailedUsage, ProviderError, type ProviderFault, type Usage } from './port.ts';

/**
 * The failure of a call without an answer, derived from the HTTP exchange alone: errors of the packages may contain the
 * provider's text.
 */
export function failureOf(
  exchange: HttpExchange,
  stopped: 'timeout' | 'aborted' | undefined,
  adapter: Pick<Adapter, 'usageOf' | 'usageIn' | 'faultOfRefusal'>,
): ProviderError {
  const { refusal } = exchange;
  const counted = usageFrom(adapter, exchange.usage);
  if (refusal !== undefined) {
    const { status, hasBegun } = refusal;
    const body = parsed(refusal.body);
    const fault = adapter.faultOfRefusal?.(status, body) ?? faultOfStatus(status);
    return new ProviderError(fault, usageOfRefusal(refusal, usageFrom(adapter, adapter.usageIn(body))), {
      // The status of an answer that had begun was a success.
      ...(hasBegun ? { reported: counted } : { status }),
      retryAfter: readRetryAfter(refusal.retryAfter),
    });
  }
  // The package sent nothing, because the vendor accepts no such request.
  if (exchange.requests === 0 && stopped === undefined) return new ProviderError('request_refused', 'none');
  if (!exchange.left) return new ProviderError(stopped ?? 'unreachable', 'none');
  if (!exchange.answered || exchange.cut || stopped !== undefined) {
    const { isForeign } = exchange;
    return new ProviderError(stopped ?? 'broken', 'unknown', { reported: counted, isForeign });
  }
  // A complete but unusable answer can have figures, and they count (contract 7).
  const { status, isForeign } = exchange;
  return new ProviderError('broken', isComplete(counted) ? counted : 'unknown', {
    status,
    reported: counted,
    isForeign,
  });
}

function faultOfStatus(status: number): ProviderFault {
  if (status === 401 || status === 403) return 'key_refused';
  if (status === 404) return 'model_unknown';
  if (status === 429) return 'rate_limited';
  if (status === 413) return 'context_length_exceeded';
  return status >= 400 && status <= 499 ? 'request_refused' : 'unavailable';
}

/**
 * A refusal without figures costs nothing. Not a refusal: 502, 504 and 52x, where a proxy lost an answer that the
 * provider may have produced, and an error in an answer that had begun.
 */
function usageOfRefusal({ status, hasBegun }: NonNullable<HttpExchange['refusal']>, usage: Usage): FailedUsage {
  if (isComplete(usage)) return usage;
  return hasBegun || status === 502 || status === 504 || (status >= 520 && status <= 527) ? 'unknown' : 'none';
}

function isComplete({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens !== undefined && outputTokens !== undefined;
}

/** Accepts seconds or an HTTP date (RFC 9110, 10.2.3), so no other text of the provider passes. */
function readRetryAfter(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return value;
  return /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value) ? value : undefined;
}
