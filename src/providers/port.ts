import type { CallTimes } from './deadline.ts';

/** The possible providers: the three vendors, and any server that uses the chat format of the first. */
export const providerNames = ['openai', 'anthropic', 'google', 'self_hosted'] as const;
export type ProviderName = (typeof providerNames)[number];

/** A message of the conversation. System messages may be anywhere; each adapter moves them as its vendor requires. */
export type Message =
  | { role: 'system'; content: string; cache?: CacheControl }
  | { role: 'user'; content: string | readonly UserPart[] }
  | { role: 'assistant'; content: Text; toolCalls?: readonly ToolCall[] }
  | { role: 'tool'; results: readonly ToolResult[] };

/** A text, or its parts. */
export type Text = string | readonly TextPart[];

export interface TextPart {
  readonly type: 'text';
  readonly text: string;
  readonly cache?: CacheControl;
}

export type UserPart =
  | TextPart
  /** `data` is base64. */
  | { type: 'image'; mediaType: string; data: string; cache?: CacheControl };

/** Has the vendor cache the request up to here, for so long; left out: for its usual time. */
export interface CacheControl {
  readonly ttl?: '5m' | '1h';
}

export interface Tool {
  name: string;
  description?: string | undefined;
  /** JSON Schema of an object. */
  inputSchema: Record<string, unknown>;
  /** Whether the input must match the schema exactly. */
  strict?: boolean | undefined;
  cache?: CacheControl | undefined;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text as the model wrote it, possibly malformed. */
  input: string;
  /**
   * Sent back to its vendor with the call: the signature of the preceding thought (Google), or the signed blocks of
   * reasoning as JSON text (Anthropic).
   */
  signature?: string;
  cache?: CacheControl;
}

export interface ToolResult {
  id: string;
  name: string;
  output: Text;
  cache?: CacheControl;
}

/** One request to a provider. It is sent once, without retries. */
export interface ModelCall {
  provider: ProviderName;
  model: string;
  /** May be empty for a self-hosted server without a key. */
  apiKey: string;
  /** Left out: the base URL from the settings, or else the vendor's default. */
  baseUrl?: string | undefined;
  messages: readonly Message[];
  tools?: readonly Tool[] | undefined;
  /** The max. output tokens. Required with the shared token, so that the max. cost is known in advance. */
  maxTokens: number | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  stop?: readonly string[] | undefined;
  toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string } | undefined;
  /** False: at most one tool call per answer. */
  parallelToolCalls?: boolean | undefined;
  /** Left out: text. */
  responseFormat?: JsonFormat | undefined;
  reasoningEffort?: ReasoningEffort | undefined;
  /** Whether the vendor is asked to show the model's reasoning, where it only does on request. */
  showsReasoning?: boolean | undefined;
  /** Has the vendor cache as much of the request as it can. */
  cache?: CacheControl | undefined;
  times: CallTimes;
  /** Awaited once connected, before anything is sent. If it rejects, nothing is sent. */
  beforeSend?: (() => Promise<void>) | undefined;
  /** Called when the provider has begun a stream with a successful status. */
  onAnswering?: ((headers: VendorHeaders) => void) | undefined;
  /** Receives the reasoning of a stream that the vendor shows. The next part is read when it resolves. */
  onReasoning?: OnText | undefined;
  /** Receives the tool calls of a stream in pieces. The next piece is read when it resolves. */
  onToolCall?: ((piece: ToolCallPiece) => Promise<void> | void) | undefined;
  /** A request in the provider's own format instead of messages. It and its answer stay as they are. */
  passThrough?: PassThroughRequest | undefined;
  /** Aborts the request and closes its connection. */
  signal?: AbortSignal | undefined;
}

/** The operations whose requests and answers are passed through, by their paths at the vendors. */
export type PassedOperation = 'chat/completions' | 'responses' | 'embeddings' | 'messages' | 'messages/count_tokens';

export interface PassThroughRequest {
  readonly operation: PassedOperation;
  /** The body to send, with this cap of output tokens; undefined: with the request's own. */
  bytes(maxTokens: number | undefined): Uint8Array<ArrayBuffer>;
  /** Headers of the client to send. */
  readonly headers: Readonly<Record<string, string>>;
  /** The query string to send, from its `?`. Left out: none. */
  readonly query?: string | undefined;
  /** Whether the event with the figures is taken out of a stream, because the client did not ask for it. */
  readonly hidesUsage: boolean;
  /** Receives the text of a stream. The next one is read when it resolves. Left out: the answer is not streamed. */
  readonly onText?: OnPassedText | undefined;
}

/** Receives events of a stream that is passed through. `hasPart`: a part of the answer is among those so far. */
export type OnPassedText = (text: string, hasPart: boolean) => Promise<void> | void;

/** Headers of a provider's answer that are passed on with it, in lower case. */
export type VendorHeaders = Readonly<Record<string, string>>;

/** A provider's error. It has no key in it. */
export interface VendorError {
  readonly message: string;
  readonly type: string | null;
  readonly param: string | null;
  readonly code: string | null;
}

/** Without a schema: any JSON object. */
export interface JsonFormat {
  readonly schema?: Record<string, unknown> | undefined;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly strict?: boolean | undefined;
}

export const reasoningEfforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type ReasoningEffort = (typeof reasoningEfforts)[number];

/** The start of a tool call, or a piece of its input. `index` counts the calls of an answer from 0. */
export type ToolCallPiece =
  | { readonly index: number; readonly begun: Omit<ToolCall, 'input'>; readonly input: string }
  | { readonly index: number; readonly begun: undefined; readonly input: string };

/** Tokens as counted by the provider; undefined where it sent no figure. */
export interface Usage {
  inputTokens: number | undefined;
  /** The part of the input read from the provider's cache. */
  cachedTokens?: number | undefined;
  /** The part of the input written to its cache. */
  cacheWriteTokens?: number | undefined;
  /** The part of the cache writes that is kept for an hour. */
  hourCacheWriteTokens?: number | undefined;
  outputTokens: number | undefined;
  /** The part of the output that is not in the answer. */
  reasoningTokens?: number | undefined;
}

export interface Answer {
  text: string;
  /** What the vendor shows of the model's reasoning; left out: nothing. */
  reasoning?: string;
  toolCalls: readonly ToolCall[];
  finishReason: 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other';
  /** Why the vendor ended an answer as refused; otherwise left out. `text` is what the model had written until then. */
  refusedBecause?: string;
  usage: Usage;
  /** The answer to a request that was passed through, as the vendor sent it; an empty text where it was streamed. */
  passed?: { readonly text: string; readonly headers: VendorHeaders };
  /** Settings dropped from the call because the model does not accept them; left out: none. */
  droppedSettings?: readonly string[];
  /** The number of tool calls not read because the answer has too many; left out: none. */
  unreadToolCalls?: number;
}

/** Receives each part of a text. The next part is read when it resolves. */
export type OnText = (text: string) => Promise<void> | void;

/** The only way to the providers. */
export interface LanguageModels {
  /**
   * Streams the answer to `onText`, if given. Rejects with a ProviderError, which contains no text of the provider, or
   * with what `onText` throws, which ends the call.
   */
  call(call: ModelCall, onText?: OnText): Promise<Answer>;
  /** The settings that the model does not take, by their names in `ModelCall`. Sends nothing. */
  unsupported(settings: ModelSettings): Promise<readonly string[]>;
}

/** The settings of a call, without its content. */
export type ModelSettings = Pick<
  ModelCall,
  | 'provider'
  | 'model'
  | 'maxTokens'
  | 'temperature'
  | 'topP'
  | 'stop'
  | 'tools'
  | 'toolChoice'
  | 'parallelToolCalls'
  | 'responseFormat'
  | 'reasoningEffort'
  | 'showsReasoning'
  | 'cache'
>;

export type ProviderFault =
  /** 401 or 403. */
  | 'key_refused'
  /** 404: the provider does not know the model or the address. */
  | 'model_unknown'
  /** 429. */
  | 'rate_limited'
  /** 429, because the account at the provider has no credit. */
  | 'quota_exhausted'
  /** The conversation is longer than the model accepts. */
  | 'context_length_exceeded'
  /** The provider's filter refused the request or its answer. */
  | 'content_filtered'
  /** Any other 4xx. */
  | 'request_refused'
  /** 5xx, or a redirect, which is never followed. */
  | 'unavailable'
  /** The answer was truncated, has neither text nor a tool call, or is malformed. */
  | 'broken'
  /** No connection was made, so nothing was sent. */
  | 'unreachable'
  | 'timeout'
  /** The caller's signal aborted the call. */
  | 'aborted';

/**
 * The possible cost of a failed call. `none`: it was not sent, or the provider refused it. `Usage`: the error has
 * figures. `unknown`: the provider may have charged it.
 */
export type FailedUsage = 'none' | 'unknown' | Usage;

/**
 * A call without an answer. The message is the service's own, because the provider's text may contain keys or prompts.
 */
export class ProviderError extends Error {
  readonly fault: ProviderFault;
  readonly usage: FailedUsage;
  /** HTTP status of the provider's answer, if any. */
  readonly status: number | undefined;
  /** The provider's value: seconds, or an HTTP date. */
  readonly retryAfter: string | undefined;
  /** The tokens reported before the failure, for example in a truncated stream. */
  readonly reported: Usage;
  /** Whether the answer is complete but nothing in it is in the vendor's format: another kind of server sent it. */
  readonly isForeign: boolean;
  readonly #vendor: VendorError | undefined;
  readonly #headers: VendorHeaders;

  constructor(
    fault: ProviderFault,
    usage: FailedUsage,
    details: {
      status?: number | undefined;
      retryAfter?: string | undefined;
      reported?: Usage | undefined;
      isForeign?: boolean | undefined;
      vendor?: VendorError | undefined;
      headers?: VendorHeaders | undefined;
    } = {},
  ) {
    super(`provider call failed: ${fault}${details.status === undefined ? '' : ` (status ${details.status})`}`);
    this.name = 'ProviderError';
    this.fault = fault;
    this.usage = usage;
    this.status = details.status;
    this.retryAfter = details.retryAfter;
    this.isForeign = details.isForeign ?? false;
    this.#vendor = details.vendor;
    this.#headers = details.headers ?? {};
    const charged = typeof usage === 'object' ? usage : undefined;
    this.reported = charged ?? details.reported ?? { inputTokens: undefined, outputTokens: undefined };
  }
  /** The vendor's own error, of a request that was passed through. For its client alone: logs do not get it. */
  get vendor(): VendorError | undefined {
    return this.#vendor;
  }

  /** Headers of the vendor's answer to a request that was passed through. */
  get vendorHeaders(): VendorHeaders {
    return this.#headers;
  }
}
