import { type CallPrice, costOfCall } from './call-cost.ts';
import type { FailureCause } from './failure-cause.ts';
import type { Answer, FailedUsage, ProviderName, Usage } from './port.ts';

/** The operations that call models. */
export const callOperations = ['completion', 'chat', 'openai'] as const;

/** Who asks a model, and in which operation. */
export interface Asker {
  readonly operation: (typeof callOperations)[number];
  /** The id of the client or of the key. */
  readonly clientId: string;
  /** Of a key: the client whose person made it. */
  readonly makerId?: string | undefined;
  readonly agentId?: string | undefined;
  /** Whom the client names as its user. */
  readonly user?: string | undefined;
}

/** What is known of a call before it leaves. */
export interface BegunCall extends Asker {
  /** A UUID of version 7: ids have the order of time. A call with the shared token has that of its reservation. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Whose key the call has. */
  readonly token: 'own' | 'shared';
  readonly provider: ProviderName;
  readonly model: string;
  /** Of the moment `at`. Undefined: nobody knows what the model costs. */
  readonly price: CallPrice | undefined;
}

/** How a call ended. */
export interface EndOfCall {
  /** `none`: it never left, or the provider refused it without figures. Such a call has no record. */
  readonly usage: FailedUsage;
  /** What the provider has told, also of a call that failed. */
  readonly reported: Usage;
  readonly durationMs: number;
  /** Of a stream: until its first part. */
  readonly firstTokenMs?: number | undefined;
  /** Of a call that was answered. */
  readonly finishReason?: Answer['finishReason'] | undefined;
  /** Of a call without an answer. */
  readonly cause?: FailureCause | undefined;
}

/** The begin of a record, as the database reads it: names of columns, and JSON values. A reservation bounds its cost by `price`. */
export function beginOfRecord(call: BegunCall): Record<string, unknown> {
  return { ...begunOf(call), price: call.price };
}

/** The record of a call, as the database reads it. */
export function recordOf(call: BegunCall, end: EndOfCall): Record<string, unknown> {
  const { reported } = end;
  return {
    ...begunOf(call),
    input_tokens: reported.inputTokens,
    cached_tokens: reported.cachedTokens,
    cache_write_tokens: reported.cacheWriteTokens,
    output_tokens: reported.outputTokens,
    reasoning_tokens: reported.reasoningTokens,
    first_token_ms: end.firstTokenMs,
    duration_ms: end.durationMs,
    finish_reason: end.finishReason?.replace('-', '_'),
    cause: end.cause,
    cost: costOfCall(call.price, reported)?.toString(),
    price_from: call.price?.from,
  };
}

function begunOf(call: BegunCall): Record<string, unknown> {
  const { id, at, operation, token, provider, model, clientId, makerId, agentId, user } = call;
  // A name that the database does not store would fail the batch of all calls, again and again.
  const stored = model.replaceAll('\0', '\ufffd');
  const known = { id, at: new Date(at).toISOString(), operation, token, provider, model: stored, client: clientId };
  return { ...known, maker: makerId, agent: agentId, end_user: user };
}
