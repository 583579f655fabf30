import type { CallTimes } from './deadline.ts';

/** The possible providers: the three vendors, and any server that uses the chat format of the first. */
export const providerNames = ['openai', 'anthropic', 'google', 'self_hosted'] as const;
export type ProviderName = (typeof providerNames)[number];

/**
 * A message of the conversation. System messages may have any position; each adapter moves them as its vendor requires.
 */
export type Message =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string | readonly UserPart[] }
  | { role: 'assistant'; content: Text; toolCalls?: readonly ToolCall[] }
  | { role: 'tool'; results: readonly ToolResult[] };

/** A text, or the texts of its parts. */
export type Text = string | readonly string[];

export type UserPart =
  | { type: 'text'; text: string }
  /** `data` is base64. `detail` is a setting of the first provider. */
  | { type: 'image'; mediaType: string; data: string; detail?: 'low' | 'high' | undefined };

export interface Tool {
  name: string;
  description?: string | undefined;
  /** JSON Schema of an object. */
  inputSchema: Record<string, unknown>;
  /** Whether the input has to match the schema exactly. */
  strict?: boolean | undefined;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text as the model wrote it. It may be invalid JSON. */
  input: string;
  /**
   * What its vendor wants back with the call: the signature of the thought that led to it (Google), or the signed blocks of
   * reasoning before it, as JSON text (Anthropic).
   */
  signature?: string;
}

export interface ToolResult {
  id: string;
  name: string;
  output: Text;
}

/** One request to a provider. It is sent once, without retries. */
export interface ModelCall {
  provider: ProviderName;
  model: string;
  /** May be empty for a self-hosted server without a key. */
  apiKey: string;
  /** If left out, the base URL from the settings, or else the vendor's default. */
  baseUrl?: string | undefined;
  messages: readonly Message[];
  tools?: readonly Tool[] | undefined;
  /** The max. output tokens. A call with the shared token always has them, so its max. cost is known before it. */
  maxTokens: number | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  stop?: readonly string[] | undefined;
  toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string } | undefined;
  /** False: at most one call of a tool in an answer. */
  parallelToolCalls?: boolean | undefined;
  /** Left out: text. */
  responseFormat?: JsonFormat | undefined;
  reasoningEffort?: ReasoningEffort | undefined;
  times: CallTimes;
  /** Awaited when the connection is there, before anything is sent. If it rejects, nothing is. */
  beforeSend?: (() => Promise<void>) | undefined;
  /** Called when the provider has begun to answer a stream with success. */
  onAnswering?: (() => void) | undefined;
  /** Receives the tool calls of a stream in pieces. The next piece is read when it has resolved. */
  onToolCall?: ((piece: ToolCallPiece) => Promise<void> | void) | undefined;
  /** A request in the first provider's Responses format, in place of the messages. It is passed through, and so is the answer. */
  passThrough?: PassThroughRequest | undefined;
  /** Aborts the request. The provider sees that its connection closes. */
  signal?: AbortSignal | undefined;
}

/** Receives each event of a stream that is passed through. The next one is read when it has resolved. */
export type OnEvent = (event: object) => Promise<void> | void;

export interface PassThroughRequest {
  readonly body: Readonly<Record<string, unknown>>;
  /** Left out: the answer is not streamed. */
  readonly onEvent?: OnEvent | undefined;
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

/** The begin of a tool call, or a piece of its input. `index` counts the calls of an answer from 0. */
export type ToolCallPiece =
  | { readonly index: number; readonly begun: Omit<ToolCall, 'input'>; readonly input: string }
  | { readonly index: number; readonly begun: undefined; readonly input: string };

/** Tokens as the provider counted them; undefined where it gave no figure. */
export interface Usage {
  inputTokens: number | undefined;
  /** The part of the input that the provider read from its cache. */
  cachedTokens?: number | undefined;
  /** The part of the input that it wrote into its cache. */
  cacheWriteTokens?: number | undefined;
  outputTokens: number | undefined;
  /** The part of the output that is no text of the answer. */
  reasoningTokens?: number | undefined;
}

export interface Answer {
  text: string;
  toolCalls: readonly ToolCall[];
  finishReason: 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other';
  /** The end of `text` in which the model refuses to answer; left out where it does not. */
  refusal?: string;
  /** Why the vendor ended an answer as refused; left out where it did not. `text` is what the model had written until then. */
  refusedBecause?: string;
  usage: Usage;
  /** The answer to a request that was passed through, as the vendor wrote it. */
  passed?: unknown;
  /** Settings of the call that were not sent because the model does not accept them; left out where all were sent. */
  droppedSettings?: readonly string[];
  /** The number of tool calls that were not read, because the answer has too many; left out where all were read. */
  unreadToolCalls?: number;
}

/** Receives each part of a text. The next part is read when it has resolved. */
export type OnText = (text: string, isRefusal?: boolean) => Promise<void> | void;

/** The only way to the providers. */
export interface LanguageModels {
  /**
   * Streams the answer where `onText` takes it. Rejects with a ProviderError, which contains no text of the provider, or with
   * what `onText` throws, which ends the call.
   */
  call(call: ModelCall, onText?: OnText): Promise<Answer>;
  /** The settings of such a call that its model does not take, by their names in `ModelCall`. Nothing is sent. */
  untaken(settings: ModelSettings): Promise<readonly string[]>;
}

/** What of a call is a setting, and not its content. */
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
  /** The answer was cut, has neither text nor a tool call, or does not follow the vendor's format. */
  | 'broken'
  /** No connection was made, so nothing was sent. */
  | 'unreachable'
  | 'timeout'
  /** The caller's signal aborted the call. */
  | 'aborted';

/**
 * The possible cost of a failed call. `none`: the call never left, or the provider refused it. `Usage`: the error has
 * figures. `unknown`: nobody knows.
 */
export type FailedUsage = 'none' | 'unknown' | Usage;

/**
 * A call without an answer. The message is the service's own, because the provider's text may contain keys or prompts.
 */
export class ProviderError extends Error {
  readonly fault: ProviderFault;
  readonly usage: FailedUsage;
  /** HTTP status of the provider's answer, if it sent one. */
  readonly status: number | undefined;
  /** The provider's value: seconds, or an HTTP date. */
  readonly retryAfter: string | undefined;
  /** The tokens that the provider had reported before the failure, for example in a stream that was cut. */
  readonly reported: Usage;
  /** Whether the answer is complete and has nothing of the vendor's format: another kind of server has sent it. */
  readonly isForeign: boolean;

  constructor(
    fault: ProviderFault,
    usage: FailedUsage,
    details: {
      status?: number | undefined;
      retryAfter?: string | undefined;
      reported?: Usage | undefined;
      isForeign?: boolean | undefined;
    } = {},
  ) {
    super(`provider call failed: ${fault}${details.status === undefined ? '' : ` (status ${details.status})`}`);
    this.name = 'ProviderError';
    this.fault = fault;
    this.usage = usage;
    this.status = details.status;
    this.retryAfter = details.retryAfter;
    this.isForeign = details.isForeign ?? false;
    const told = typeof usage === 'object' ? usage : undefined;
    this.reported = told ?? details.reported ?? { inputTokens: undefined, outputTokens: undefined };
  }
}
