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
import { startDeadline } from './deadline.ts';
import { google } from './google.ts';
import { newExchange } from './http-exchange.ts';
import { memberOf } from './members.ts';
import { openai, selfHosted } from './openai.ts';
import {
  type Answer,
  type LanguageModels,
  type ModelCall,
  type OnText,
  ProviderError,
  type ProviderName,
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
      fetch: transport.fetchFor(exchange, {
        streaming,
        deadline,
        adapter,
        beforeSend: call.beforeSend,
        onAnswering: call.onAnswering,
      }),
    });
    return { adapter, exchange, model, deadline };
  }

  return {
    async call(call, onText) {
      const { adapter, exchange, model, deadline } = begin(call, onText !== undefined);
      const options = optionsOf(call, adapter, deadline.signal);
      const usage = () => adapter.usageOf(exchange.usage);
      let readerFault: { readonly error: unknown } | undefined;
      try {
        if (onText === undefined) {
          const result = await model.doGenerate(options);
          const { unreadToolCalls } = exchange;
          return { ...answerOf(result, usage()), ...(unreadToolCalls === 0 ? {} : { unreadToolCalls }) };
        }
        const { stream } = await model.doStream(options);
        const answer = await answerOfStream(stream, usage, async (text) => {
          try {
            await onText(text);
          } catch (error) {
            readerFault = { error };
            throw error;
          }
        });
        if (exchange.cut || exchange.refusal !== undefined)
          throw new Error('the stream was cut, or it reports an error');
        return answer;
      } catch (error) {
        if (readerFault !== undefined) throw readerFault.error;
        throw error instanceof ProviderError ? error : failureOf(exchange, deadline.reason(), adapter);
      } finally {
        // Closes the connection when the reader has stopped early.
        deadline.end();
      }
    },
  };
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

async function answerOfStream(
  parts: ReadableStream<LanguageModelV4StreamPart>,
  usage: () => Usage,
  onText: OnText,
): Promise<Answer> {
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
      if (part.delta !== '') await onText(part.delta);
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
      return answerOf({ ...part, content, warnings }, usage());
    }
  }
  throw new Error('the stream was cut');
}

/** A base URL without a path gets the vendor's default path, because users write it both ways. */
function withVersion(baseUrl: string, { defaultBaseUrl }: Adapter): string {
  const url = new URL(baseUrl);
  return url.pathname === '/' ? `${url.origin}${new URL(defaultBaseUrl).pathname}` : baseUrl.replace(/\/+$/, '');
}
