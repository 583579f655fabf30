import { type Adapter, memberOf } from './adapter.ts';
import { type FailedUsage, ProviderError, type ProviderFault, type Usage } from './port.ts';
import type { HttpExchange } from './transport.ts';

/**
 * The failure of a call without an answer. It is derived only from the HTTP exchange, because the errors of the
 * packages may contain the provider's own text.
 */
export function failureOf(
  exchange: HttpExchange,
  stopped: 'timeout' | 'aborted' | undefined,
  adapter: Pick<Adapter, 'usageOf' | 'faultOfRefusal'>,
  reported?: Usage,
): ProviderError {
  const { refusal } = exchange;
  if (refusal !== undefined) {
    const { status } = refusal;
    const fault = adapter.faultOfRefusal?.(status, parsed(refusal.body)) ?? faultOfStatus(status);
    return new ProviderError(fault, usageOfRefusal(refusal, adapter), {
      status,
      retryAfter: readRetryAfter(refusal.retryAfter),
    });
  }
  // The package sent nothing, because it knows that the vendor accepts no such request.
  if (exchange.requests === 0 && stopped === undefined) return new ProviderError('request_refused', 'none');
  if (!exchange.left) return new ProviderError(stopped ?? 'unreachable', 'none');
  if (!exchange.answered || stopped !== undefined)
    return new ProviderError(stopped ?? 'broken', 'unknown', { reported });
  // A complete but unusable answer can still have figures, and they count (contract 7).
  const counted = adapter.usageOf(usageIn(exchange.body ?? ''));
  const usage = isComplete(counted) ? counted : 'unknown';
  return new ProviderError('broken', usage, { status: exchange.status, reported });
}

function faultOfStatus(status: number): ProviderFault {
  if (status === 401 || status === 403) return 'key_refused';
  if (status === 404) return 'model_unknown';
  if (status === 429) return 'rate_limited';
  if (status === 413) return 'context_length_exceeded';
  return status >= 400 && status <= 499 ? 'request_refused' : 'unavailable';
}

/**
 * A refusal without figures costs nothing. A 502, 504 or 52x is not a refusal: a proxy lost an answer that the provider
 * may have made.
 */
function usageOfRefusal(
  { status, body }: NonNullable<HttpExchange['refusal']>,
  adapter: Pick<Adapter, 'usageOf'>,
): FailedUsage {
  const usage = adapter.usageOf(usageIn(body));
  if (isComplete(usage)) return usage;
  return status === 502 || status === 504 || (status >= 520 && status <= 527) ? 'unknown' : 'none';
}

function isComplete({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens !== undefined && outputTokens !== undefined;
}

function usageIn(body: string): unknown {
  const content = parsed(body);
  return memberOf(content, 'usage') ?? memberOf(content, 'usageMetadata');
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Accepts seconds or an HTTP date, and no other text of the provider (RFC 9110, 10.2.3). */
function readRetryAfter(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return value;
  return /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value) ? value : undefined;
}
