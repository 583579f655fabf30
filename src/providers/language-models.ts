import type {
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4FunctionTool,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from '@ai-sdk/provider';
import type { Adapter } from './adapter.ts';
import { answerLimits } from './answer-limits.ts';
import { anthropic } from './anthropic.ts';
import { type CallDeadline, startDeadline } from './deadline.ts';
import { google } from './google.ts';
import { type HttpExchange, newExchange } from './http-exchange.ts';
import { memberOf } from './members.ts';
import { openai, selfHosted } from './openai.ts';
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
import type { Transport } from './transport.ts';

export interface LanguageModelsOptions {
  /** The vendors' base URLs from the settings; undefined means the vendor's default. */
  baseUrls: Readonly<Partial<Record<ProviderName, string | undefined>>>;
  /**
   * `selfHosted` is a separate transport that checks the addresses it connects to. Without it self-hosted servers are
   * unreachable.
   */
  transports: { vendors: Transport; selfHosted?: Transport };
}

const adapters: Record<ProviderName, Adapter> = { openai, anthropic, google, self_hosted: selfHosted };

/** Implements the port to the providers with their packages. It never retries: the caller knows what a call costs. */
export function createLanguageModels({ baseUrls, transports }: LanguageModelsOptions): LanguageModels {
  function begin(call: ModelCall, streaming: boolean) {
    const adapter = adapters[call.provider];
    const transport = call.provider === 'self_hosted' ? transports.selfHosted : transports.vendors;
    if (transport === undefined) throw new ProviderError('unreachable', 'none');
    if (adapter.canBeModel?.(call.model) === false) throw new ProviderError('model_unknown', 'none');
    const exchange = newExchange();
    const deadline = startDeadline(call.times, call.signal);
    const model = adapter.languageModel({
      model: call.model,
      apiKey: call.apiKey,
      baseUrl: withVersion(call.baseUrl ?? baseUrls[call.provider] ?? adapter.defaultBaseUrl, adapter),
      fetch: transport.fetchFor(exchange, { streaming, deadline, adapter, beforeSend: call.beforeSend }),
    });
    return { adapter, exchange, model, deadline };
  }

  async function generate(call: ModelCall): Promise<Answer> {
    const { adapter, exchange, model, deadline } = begin(call, false);
    try {
      const result = await model.doGenerate(optionsOf(call, adapter, deadline.signal));
      const { unreadToolCalls } = exchange;
      const usage = adapter.usageOf(exchange.usage);
      return { ...answerOf(result, usage), ...(unreadToolCalls === 0 ? {} : { unreadToolCalls }) };
    } catch (error) {
      throw failure(error, exchange, deadline, adapter);
    } finally {
      deadline.end();
    }
  }

  async function* stream(call: ModelCall): AsyncGenerator<StreamEvent, void> {
    const { adapter, exchange, model, deadline } = begin(call, true);
    try {
      const { stream: parts } = await model.doStream(optionsOf(call, adapter, deadline.signal));
      for await (const event of eventsOf(parts, () => adapter.usageOf(exchange.usage))) {
        if (event.type === 'answer' && (exchange.cut || exchange.refusal !== undefined)) {
          throw new Error('the stream was cut, or it reports an error');
        }
        yield event;
      }
    } catch (error) {
      throw failure(error, exchange, deadline, adapter);
    } finally {
      // Closes the connection when the reader has stopped early.
      deadline.end();
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

interface Generated {
  readonly content: readonly LanguageModelV4Content[];
  readonly finishReason: LanguageModelV4FinishReason;
  readonly warnings: readonly SharedV4Warning[];
}

function answerOf({ content, finishReason: { unified }, warnings }: Generated, usage: Usage): Answer {
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('');
  const toolCalls = content.flatMap((part): ToolCall[] =>
    part.type === 'tool-call' && part.providerExecuted !== true
      ? [{ id: part.toolCallId, name: part.toolName, input: part.input, ...signatureOf(part.providerMetadata) }]
      : [],
  );
  const finishReason = unified === 'error' || unified === 'interrupted' ? 'other' : unified;
  const droppedSettings = warnings.flatMap((warning) => (warning.type === 'unsupported' ? [warning.feature] : []));
  return {
    text,
    toolCalls,
    finishReason,
    usage,
    ...(droppedSettings.length === 0 ? {} : { droppedSettings }),
  };
}

function signatureOf(metadata: unknown): Pick<ToolCall, 'signature'> {
  const signature = memberOf(memberOf(metadata, 'google'), 'thoughtSignature');
  return typeof signature === 'string' ? { signature } : {};
}

async function* eventsOf(
  parts: ReadableStream<LanguageModelV4StreamPart>,
  usage: () => Usage,
): AsyncGenerator<StreamEvent, void> {
  let warnings: readonly SharedV4Warning[] = [];
  const content: LanguageModelV4Content[] = [];
  let textBytes = 0;
  let toolCalls = 0;
  for await (const part of parts) {
    if (part.type === 'stream-start') {
      warnings = part.warnings;
    } else if (part.type === 'text-delta') {
      textBytes += Buffer.byteLength(part.delta);
      if (textBytes > answerLimits.streamedTextBytes) throw new Error('the text is too long');
      content.push({ type: 'text', text: part.delta });
      if (part.delta !== '') yield { type: 'text', text: part.delta };
    } else if (part.type === 'tool-input-start') {
      toolCalls += 1;
      if (toolCalls > answerLimits.toolCalls) throw new Error('too many tool calls');
    } else if (part.type === 'tool-call') {
      content.push(part);
    } else if (part.type === 'error') {
      throw new Error('the stream reports an error');
    } else if (part.type === 'finish') {
      // A stream without the vendor's end marker was cut.
      if (part.finishReason.unified === 'interrupted' || part.finishReason.unified === 'error') {
        throw new Error('the stream was cut');
      }
      yield { type: 'answer', answer: answerOf({ ...part, content, warnings }, usage()) };
      return;
    }
  }
  throw new Error('the stream was cut');
}

function failure(error: unknown, exchange: HttpExchange, deadline: CallDeadline, adapter: Adapter): ProviderError {
  return error instanceof ProviderError ? error : failureOf(exchange, deadline.reason(), adapter);
}

/** A base URL without a path gets the vendor's default path, because users write it both ways. */
function withVersion(baseUrl: string, { defaultBaseUrl }: Adapter): string {
  const url = new URL(baseUrl);
  return url.pathname === '/' ? `${url.origin}${new URL(defaultBaseUrl).pathname}` : baseUrl.replace(/\/+$/, '');
}
