import type { CallTimes } from './deadline.ts';

/** Who can be asked for text: the three vendors, and any server that speaks the first one's chat format. */
export type ProviderName = 'openai' | 'anthropic' | 'google' | 'self_hosted';

/** A turn of the conversation. System messages may stand anywhere; each adapter puts them where its vendor wants them. */
export type Message =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string; toolCalls?: readonly ToolCall[] }
  | { role: 'tool'; results: readonly ToolResult[] };

export interface Tool {
  name: string;
  description: string;
  /** JSON Schema of an object. */
  inputSchema: Record<string, unknown>;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text, as the model wrote it: it may be no JSON at all. */
  input: string;
}

export interface ToolResult {
  id: string;
  name: string;
  output: string;
}

/** One request to a provider. It is sent once: nothing here tries again. */
export interface ModelCall {
  provider: ProviderName;
  model: string;
  /** May be empty for a self-hosted server that wants none. */
  apiKey: string;
  /** Left out: the vendor's address, or the one that the settings have for it. */
  baseUrl?: string | undefined;
  messages: readonly Message[];
  tools?: readonly Tool[] | undefined;
  /** The most output tokens; always sent, so that what a call may cost is known before. */
  maxTokens: number;
  temperature?: number | undefined;
  times: CallTimes;
  /** Aborts the request; the provider sees its connection closed. */
  signal?: AbortSignal | undefined;
}

/** Tokens as the provider counted them; undefined where it did not say. */
export interface Usage {
  inputTokens: number | undefined;
  outputTokens: number | undefined;
}

export interface Answer {
  text: string;
  toolCalls: readonly ToolCall[];
  finishReason: 'stop' | 'length' | 'tool-calls' | 'content-filter' | 'other';
  usage: Usage;
  /** Settings of the call that were not sent, because the model does not take them; left out where all were. */
  droppedSettings?: readonly string[];
}

/** What comes while an answer is streamed; the last event is the whole answer. */
export type StreamEvent = { type: 'text'; text: string } | { type: 'answer'; answer: Answer };

/** The one way to the providers. Both reject with a ProviderError, and with nothing of the provider's own text. */
export interface LanguageModels {
  generate(call: ModelCall): Promise<Answer>;
  /** Leaving the loop early closes the connection. */
  stream(call: ModelCall): AsyncGenerator<StreamEvent, void>;
}

export type ProviderFault =
  /** 401 or 403. */
  | 'key_refused'
  /** 404: the model, or the whole address, is not known there. */
  | 'model_unknown'
  /** 429. */
  | 'rate_limited'
  /** 429, because the account at the provider has no credit. */
  | 'quota_exhausted'
  /** The conversation is longer than the model takes. */
  | 'context_length_exceeded'
  /** The provider's filter refused the request or its answer. */
  | 'content_filtered'
  /** Any other 4xx. */
  | 'request_refused'
  /** 5xx, or a redirect, which is never followed. */
  | 'unavailable'
  /** The answer was cut, has no text and calls no tool, or is none that the vendor's format knows. */
  | 'broken'
  /** No connection could be made: nothing was sent. */
  | 'unreachable'
  | 'timeout'
  /** By the caller's signal. */
  | 'aborted';

/**
 * What a failed call may have cost: nothing, because it never left or was refused; the figures of an error that has
 * some; or nobody knows.
 */
export type FailedUsage = 'none' | 'unknown' | Usage;

/** A call that has no answer. Its message is ours alone: the provider's may hold keys or prompts. */
export class ProviderError extends Error {
  readonly fault: ProviderFault;
  readonly usage: FailedUsage;
  /** HTTP status of the provider's answer, where there was one. */
  readonly status: number | undefined;
  /** As the provider gave it: seconds, or an HTTP date. */
  readonly retryAfter: string | undefined;
  /** What the provider had told of the tokens by then, of a stream that was cut for instance. */
  readonly reported: Usage;

  constructor(
    fault: ProviderFault,
    usage: FailedUsage,
    details: { status?: number | undefined; retryAfter?: string | undefined; reported?: Usage | undefined } = {},
  ) {
    super(`provider call failed: ${fault}${details.status === undefined ? '' : ` (status ${details.status})`}`);
    this.name = 'ProviderError';
    this.fault = fault;
    this.usage = usage;
    this.status = details.status;
    this.retryAfter = details.retryAfter;
    const told = typeof usage === 'object' ? usage : undefined;
    this.reported = told ?? details.reported ?? { inputTokens: undefined, outputTokens: undefined };
  }
}
