import { type Adapter, memberOf } from './adapter.ts';
import { type FailedUsage, ProviderError, type ProviderFault, type Usage } from './port.ts';
import type { HttpExchange } from './transport.ts';

/**
 * What a call without an answer has come to, told from the exchange alone: what the packages throw may hold the
 * provider's own text.
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
  // The package would not even ask: it knows that the vendor takes no such request.
  if (exchange.requests === 0 && stopped === undefined) return new ProviderError('request_refused', 'none');
  if (!exchange.left) return new ProviderError(stopped ?? 'unreachable', 'none');
  if (!exchange.answered || stopped !== undefined)
    return new ProviderError(stopped ?? 'broken', 'unknown', { reported });
  // A whole answer without anything usable may have its figures all the same, and they count (contract 7).
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
 * A refusal costs nothing unless it has figures. A 502, 504 or 52x is no refusal: something between here and the
 * provider lost an answer that may have been made.
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

/** Seconds or an HTTP date, and nothing else of what a provider may have written there (RFC 9110, 10.2.3). */
function readRetryAfter(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value)) return value;
  return /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value) ? value : undefined;
}
