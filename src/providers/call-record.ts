import type { FailureCause } from './failure-cause.ts';
import type { Answer, FailedUsage, ProviderName, Usage } from './port.ts';

/** Prices by kind of token. `hourCacheWrites`: of cache writes kept for an hour; left out: as other cache writes. */
type PriceTier = Readonly<Record<'above' | 'input' | 'cachedInput' | 'cacheWrites' | 'output', number>> & {
  readonly hourCacheWrites?: number;
};

/** The price of a model, in pico-USD (10^-12 US dollars) per token. */
export interface CallPrice {
  /** The first day of the price, such as `2026-11-01`. Left out: no start. */
  readonly from?: string;
  /** Upper bound of an image, in tokens. Left out: unknown. */
  readonly imageTokens?: number;
  /** By ascending `above`. The last tier that the input tokens exceed applies to all tokens of the call. */
  readonly tiers: readonly PriceTier[];
}

/** The cost of a call in pico-USD. The input includes cached tokens and cache writes. Undefined where unknown. */
export function costOfCall(price: CallPrice | undefined, usage: Usage): bigint | undefined {
  const { inputTokens: input, outputTokens: output, cachedTokens = 0, cacheWriteTokens = 0 } = usage;
  const { hourCacheWriteTokens = 0 } = usage;
  if (price === undefined || input === undefined || output === undefined) return undefined;
  const tier = price.tiers.findLast(({ above }) => above < input);
  if (tier === undefined) return undefined;
  return (
    BigInt(input - cachedTokens - cacheWriteTokens) * BigInt(tier.input) +
    BigInt(cachedTokens) * BigInt(tier.cachedInput) +
    BigInt(cacheWriteTokens - hourCacheWriteTokens) * BigInt(tier.cacheWrites) +
    BigInt(hourCacheWriteTokens) * BigInt(tier.hourCacheWrites ?? tier.cacheWrites) +
    BigInt(output) * BigInt(tier.output)
  );
}

/** The operations that call models. */
export const callOperations = ['completion', 'chat', 'openai', 'anthropic'] as const;

/** The caller of a model, and the operation. */
export interface CallOrigin {
  readonly operation: (typeof callOperations)[number];
  /** The id of the client or of the key. */
  readonly clientId: string;
  /** Of a key: the client that made it. */
  readonly makerId?: string | undefined;
  readonly agentId?: string | undefined;
  /** The end user: that of the key, or whom the client names. */
  readonly user?: string | undefined;
  /**
   * True: the key fixes the user, so that budgets of users apply. False: metadata alone names the user, whom no budget
   * and no sum counts. Left out: the client names the user.
   */
  readonly isUserFixed?: boolean | undefined;
}

/** The start of a call's record, known before the call leaves. */
export interface CallStart extends Omit<CallOrigin, 'makerId'> {
  /** The clients through which the client or the key was made. The call counts towards their budgets, too. */
  readonly makers?: readonly string[] | undefined;
  /** A UUID v7, so ids sort by time. With the shared token it is also the id of the reservation. */
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Whose key the call uses. */
  readonly token: 'own' | 'shared';
  readonly provider: ProviderName;
  readonly model: string;
  /** At the moment `at`. Undefined: the price is unknown. */
  readonly price: CallPrice | undefined;
  /** Whether the call may write to a cache that keeps for an hour, at its own price. */
  readonly mayCacheForHour?: boolean | undefined;
}

/** How a call ended. */
export interface CallEnd {
  /** `none`: never sent, or refused without figures. Such a call has no record. */
  readonly usage: FailedUsage;
  /** As reported by the provider, also for a failed call. */
  readonly reported: Usage;
  readonly durationMs: number;
  /** Of a stream: milliseconds until its first part. */
  readonly firstTokenMs?: number | undefined;
  /** Of an answered call. */
  readonly finishReason?: Answer['finishReason'] | undefined;
  /** Of a failed call. */
  readonly cause?: FailureCause | undefined;
}

/** The start of a record for the database: column names and JSON values. A reservation bounds its cost by `price`. */
export function startOfRecord(call: CallStart): Record<string, unknown> {
  const { price, mayCacheForHour = false } = call;
  const tiers = price?.tiers.map(({ hourCacheWrites, ...tier }) =>
    mayCacheForHour && hourCacheWrites !== undefined ? { ...tier, hourCacheWrites } : tier,
  );
  return { ...startColumns(call), price: price && { ...price, tiers } };
}

/** The record of a call for the database. */
export function recordOf(call: CallStart, end: CallEnd): Record<string, unknown> {
  const { reported } = end;
  return {
    ...startColumns(call),
    input_tokens: reported.inputTokens,
    cached_tokens: reported.cachedTokens,
    cache_write_tokens: reported.cacheWriteTokens,
    hour_cache_write_tokens: reported.hourCacheWriteTokens,
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

function startColumns(call: CallStart): Record<string, unknown> {
  const { id, at, operation, token, provider, model, clientId, makers = [], agentId, user, isUserFixed } = call;
  // PostgreSQL rejects NUL in text, and one such name would fail the batch of all calls on every retry.
  const stored = model.replaceAll('\0', '\ufffd');
  const known = { id, at: new Date(at).toISOString(), operation, token, provider, model: stored, client: clientId };
  const maker = makers.length > 0 ? makers.join(' ') : undefined;
  return { ...known, maker, agent: agentId, end_user: user, user_fixed: isUserFixed };
}
