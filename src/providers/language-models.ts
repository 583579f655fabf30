import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4FunctionTool,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from '@ai-sdk/provider';
import type { Adapter } from './adapter.ts';
import { anthropic } from './anthropic.ts';
import { google } from './google.ts';
import { openai } from './openai.ts';
import {
  type Answer,
  type LanguageModels,
  type ModelCall,
  ProviderError,
  type ProviderName,
  type StreamEvent,
  type ToolCall,
  type Usage,
} from './port.ts';
import { failureOf } from './provider-failure.ts';
import { type Exchange, newExchange, type Transport } from './transport.ts';

export interface LanguageModelsOptions {
  /** The vendors' addresses by the settings; undefined is the vendor's own. */
  baseUrls: Readonly<Partial<Record<ProviderName, string | undefined>>>;
  /** `selfHosted` is a transport of its own, which looks at where it connects to; without it none is reached. */
  transports: { vendors: Transport; selfHosted?: Transport };
}

const adapters: Record<ProviderName, Adapter> = { openai, anthropic, google, self_hosted: openai };

/** The port to the providers over their packages. Nothing is tried again: the caller knows what a call costs. */
export function createLanguageModels({ baseUrls, transports }: LanguageModelsOptions): LanguageModels {
  function begin(call: ModelCall, streaming: boolean) {
    const adapter = adapters[call.provider];
    const transport = call.provider === 'self_hosted' ? transports.selfHosted : transports.vendors;
    if (transport === undefined) throw new ProviderError('unreachable', 'none');
    const exchange = newExchange();
    const model = adapter.languageModel({
      model: call.model,
      apiKey: call.apiKey,
      baseUrl: withVersion(call.baseUrl ?? baseUrls[call.provider] ?? adapter.defaultBaseUrl, adapter),
      fetch: transport.fetchFor(exchange, { streaming }),
    });
    return { adapter, exchange, model, deadline: deadlineOf(call) };
  }

  async function generate(call: ModelCall): Promise<Answer> {
    const { adapter, exchange, model, deadline } = begin(call, false);
    try {
      const result = await model.doGenerate(optionsOf(call, adapter, deadline.signal));
      return answerOf(result.content, result.finishReason, result.usage, adapter);
    } catch (error) {
      throw failure(error, exchange, deadline, adapter);
    } finally {
      deadline.end();
    }
  }

  async function* stream(call: ModelCall): AsyncGenerator<StreamEvent, void> {
    const { adapter, exchange, model, deadline } = begin(call, true);
    const told: Told = { usage: {} };
    try {
      // The vendor's own events tell of tokens long before a stream ends, and even where it does not.
      const options = { ...optionsOf(call, adapter, deadline.signal), includeRawChunks: true };
      const { stream: parts } = await model.doStream(options);
      yield* eventsOf(parts, adapter, told);
    } catch (error) {
      throw failure(error, exchange, deadline, adapter, adapter.usageOf(told.usage));
    } finally {
      deadline.end();
      // A reader that left early leaves an open connection.
      deadline.abort();
    }
  }

  return { generate, stream };
}

function optionsOf(call: ModelCall, adapter: Adapter, abortSignal: AbortSignal): LanguageModelV4CallOptions {
  const { messages, maxTokens, temperature, tools = [] } = call;
  return {
    prompt: adapter.promptOf(messages),
    maxOutputTokens: maxTokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map((tool): LanguageModelV4FunctionTool => ({ type: 'function', ...tool })) }),
    abortSignal,
  };
}

function answerOf(
  content: readonly LanguageModelV4Content[],
  { unified }: LanguageModelV4FinishReason,
  usage: LanguageModelV4Usage,
  adapter: Adapter,
): Answer {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  const toolCalls = content.flatMap((part): ToolCall[] =>
    part.type === 'tool-call' && part.providerExecuted !== true
      ? [{ id: part.toolCallId, name: part.toolName, input: part.input }]
      : [],
  );
  const finishReason = unified === 'error' || unified === 'interrupted' ? 'other' : unified;
  return { text, toolCalls, finishReason, usage: adapter.usageOf(usage.raw) };
}

/** What a stream has told of its usage so far; later events replace what earlier ones said. */
interface Told {
  usage: object;
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

async function* eventsOf(
  parts: ReadableStream<LanguageModelV4StreamPart>,
  adapter: Adapter,
  told: Told,
): AsyncGenerator<StreamEvent, void> {
  const content: LanguageModelV4Content[] = [];
  for await (const part of parts) {
    if (part.type === 'text-delta') {
      content.push({ type: 'text', text: part.delta });
      if (part.delta !== '') yield { type: 'text', text: part.delta };
    } else if (part.type === 'raw') {
      told.usage = { ...told.usage, ...objectOf(adapter.usageIn(part.rawValue)) };
    } else if (part.type === 'tool-call') {
      content.push(part);
    } else if (part.type === 'error') {
      throw new Error('the stream reports an error');
    } else if (part.type === 'finish') {
      // A stream that ends without its vendor's sign of an end was cut.
      if (part.finishReason.unified === 'interrupted' || part.finishReason.unified === 'error') {
        throw new Error('the stream was cut');
      }
      yield { type: 'answer', answer: answerOf(content, part.finishReason, part.usage, adapter) };
      return;
    }
  }
  throw new Error('the stream was cut');
}

interface Deadline {
  signal: AbortSignal;
  /** Why the signal is aborted; undefined where it is not. */
  reason(): 'timeout' | 'aborted' | undefined;
  end(): void;
  abort(): void;
}

/** A timer of our own: those of AbortSignal.timeout live on for their whole time, long after the call. */
function deadlineOf({ timeout, signal }: ModelCall): Deadline {
  const controller = new AbortController();
  let reason: 'timeout' | 'aborted' | undefined;
  const abort = (because: 'timeout' | 'aborted') => {
    reason ??= because;
    controller.abort();
  };
  const onAbort = () => abort('aborted');
  const timer = setTimeout(abort, timeout, 'timeout');
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    reason: () => reason,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    },
    abort: () => controller.abort(),
  };
}

function failure(
  error: unknown,
  exchange: Exchange,
  deadline: Deadline,
  adapter: Adapter,
  reported?: Usage,
): ProviderError {
  return error instanceof ProviderError ? error : failureOf(exchange, deadline.reason(), adapter, reported);
}

/** An address without a path means the vendor's usual one: both ways of writing it are in use. */
function withVersion(baseUrl: string, { defaultBaseUrl }: Adapter): string {
  const url = new URL(baseUrl);
  return url.pathname === '/' ? `${url.origin}${new URL(defaultBaseUrl).pathname}` : baseUrl.replace(/\/+$/, '');
}
