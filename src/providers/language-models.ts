import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
  SharedV4Warning,
} from '@ai-sdk/provider';
import { LRUCache } from 'lru-cache';
import type { Adapter } from './adapter.ts';
import type { WholeAnswer } from './answer-reader.ts';
import { anthropic } from './anthropic.ts';
import { startDeadline } from './deadline.ts';
import { google } from './google.ts';
import { newExchange } from './http-exchange.ts';
import { parsed } from './members.ts';
import { openai, selfHosted } from './openai.ts';
import { finishOfResponse, openaiResponses, passEvents } from './openai-responses.ts';
import { answerOf, answerOfStream, droppedIn } from './package-answers.ts';
import {
  type Answer,
  type JsonFormat,
  type LanguageModels,
  type ModelCall,
  type ModelSettings,
  type PassThroughRequest,
  ProviderError,
  type ProviderName,
  providerNames,
  type Tool,
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

/** What a package leaves out of a call with some settings. */
interface LeftOut {
  /** By their names in `ModelCall`. */
  readonly untaken: readonly string[];
  /** As the package names them. */
  readonly dropped: readonly string[];
}

/** Of settings whose answers are kept: how many, and the characters of each. Those with long tools are asked for each time. */
const maxKnownSettings = 1_000;
const maxKnownText = 4_096;

const adapters: Record<ProviderName, Adapter> = { openai, anthropic, google, self_hosted: selfHosted };

/** Implements the port to the providers with their packages. It never retries: the caller knows what a call costs. */
export function createLanguageModels({ baseUrls, transports }: LanguageModelsOptions): LanguageModels {
  const vendorUrls = Object.fromEntries(
    providerNames.map((name) => [name, withVersion(baseUrls[name] ?? adapters[name].defaultBaseUrl, adapters[name])]),
  ) as Record<ProviderName, string>;

  async function begin(call: ModelCall, streaming: boolean, onWhole?: (answer: WholeAnswer) => void) {
    const adapter = adapters[call.provider];
    const transport = call.provider === 'self_hosted' ? transports.selfHosted : transports.vendors;
    if (transport === undefined) throw new ProviderError('unreachable', 'none');
    if (adapter.canBeModel?.(call.model) === false) throw new ProviderError('model_unknown', 'none');
    const exchange = newExchange();
    const deadline = startDeadline(call.times, call.signal);
    const model = await adapter.languageModel({
      model: call.model,
      apiKey: call.apiKey,
      baseUrl: call.baseUrl === undefined ? vendorUrls[call.provider] : withVersion(call.baseUrl, adapter),
      fetch: transport.fetchFor(exchange, {
        streaming,
        deadline,
        adapter,
        beforeSend: call.beforeSend,
        onAnswering: call.onAnswering,
        onWhole,
      }),
    });
    return { adapter, exchange, model, deadline };
  }

  /** What packages have said of settings, by their JSON text. */
  const known = new LRUCache<string, LeftOut>({ max: maxKnownSettings });

  /** The package says before a call what it would leave out. To ask it costs as much as a call, and it says the same each time. */
  async function leftOut(settings: ModelSettings): Promise<LeftOut> {
    const text = JSON.stringify(settings);
    const said = known.get(text) ?? (await askLeftOut(settings));
    if (text.length <= maxKnownText) known.set(text, said);
    return said;
  }

  async function askLeftOut(settings: ModelSettings): Promise<LeftOut> {
    const adapter = adapters[settings.provider];
    if (adapter.canBeModel?.(settings.model) === false) return { untaken: [], dropped: [] };
    const thinking = await thinkingWithinCap(settings, adapter);
    if (thinking === 'no room') return { untaken: ['reasoningEffort'], dropped: [] };
    const { warnings } = await rehearse(settings, adapter, thinking);
    const named = warnings.flatMap((warning) => settingOf(warning, settings));
    return { untaken: [...(adapter.lacks?.(settings) ?? []), ...named], dropped: droppedIn(warnings) };
  }

  /** What the package has left out of a call whose answer it does not read. Of that format all models take a cap. */
  async function droppedOf(call: ModelCall): Promise<Pick<Answer, 'droppedSettings'>> {
    const { temperature, topP, stop, toolChoice, parallelToolCalls, responseFormat, reasoningEffort } = call;
    const settings = { temperature, topP, stop, toolChoice, parallelToolCalls, responseFormat, reasoningEffort };
    if (Object.values(settings).every((value) => value === undefined)) return {};
    const { provider, model, maxTokens, tools } = call;
    const { dropped } = await leftOut({ provider, model, maxTokens, tools, ...settings });
    return dropped.length === 0 ? {} : { droppedSettings: dropped };
  }

  /** One request in the first provider's Responses format. */
  async function passThrough(call: ModelCall, { body, onEvent }: PassThroughRequest): Promise<Answer> {
    const exchange = newExchange();
    const deadline = startDeadline(call.times, call.signal);
    const { apiKey, model, maxTokens, beforeSend, onAnswering } = call;
    const streaming = onEvent !== undefined;
    const options = { streaming, deadline, adapter: openaiResponses, beforeSend, onAnswering };
    const send = transports.vendors.fetchFor(exchange, options);
    let readerFault: { readonly error: unknown } | undefined;
    try {
      const response = await send(`${vendorUrls.openai}/responses`, {
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, model, max_output_tokens: maxTokens }),
        signal: deadline.signal,
      });
      const passed =
        onEvent === undefined || response.body === null
          ? await response.json()
          : await passEvents(response.body, async (event) => {
              try {
                await onEvent(event);
              } catch (error) {
                readerFault = { error };
                throw error;
              }
            });
      if (exchange.cut || exchange.refusal !== undefined) throw new Error('the stream was cut, or it reports an error');
      const usage = openaiResponses.usageOf(exchange.usage);
      return { text: '', toolCalls: [], finishReason: finishOfResponse(passed), usage, passed };
    } catch {
      if (readerFault !== undefined) throw readerFault.error;
      throw failureOf(exchange, deadline.reason(), openaiResponses);
    } finally {
      deadline.end();
    }
  }

  return {
    untaken: async (settings) => (await leftOut(settings)).untaken,

    async call(call, onText) {
      if (call.passThrough !== undefined) return await passThrough(call, call.passThrough);
      const whole = Promise.withResolvers<WholeAnswer>();
      const { adapter, exchange, model, deadline } = await begin(call, onText !== undefined, whole.resolve);
      const usage = () => adapter.usageOf(exchange.usage);
      let readerFault: { readonly error: unknown } | undefined;
      try {
        const thinking = await thinkingWithinCap(call, adapter);
        if (thinking === 'no room') throw new ProviderError('request_refused', 'none');
        const options = optionsOf(call, adapter, { abortSignal: deadline.signal, thinking });
        if (onText === undefined) {
          const readByPackage = model.doGenerate(options).then((result) => answerOf(result, usage(), adapter));
          const readByUs = whole.promise.then(async (read) => ({
            ...read,
            usage: usage(),
            ...(await droppedOf(call)),
          }));
          const answer = await Promise.race([readByPackage, readByUs]);
          const { unreadToolCalls } = exchange;
          return { ...answer, ...(unreadToolCalls === 0 ? {} : { unreadToolCalls }) };
        }
        const { stream } = await model.doStream(options);
        const asReader = async (read: () => Promise<void> | void) => {
          try {
            await read();
          } catch (error) {
            readerFault = { error };
            throw error;
          }
        };
        const answer = await answerOfStream(stream, usage, adapter, {
          onText: (text) => asReader(() => onText(text)),
          onToolCall: (piece) => asReader(() => call.onToolCall?.(piece)),
        });
        if (exchange.cut || exchange.refusal !== undefined)
          throw new Error('the stream was cut, or it reports an error');
        return answer;
      } catch (error) {
        if (readerFault !== undefined) throw readerFault.error;
        throw error instanceof ProviderError ? error : failureOf(exchange, deadline.reason(), adapter);
      } finally {
        // Closes the connection when the reader has stopped early.
        deadline.end(onText === undefined && exchange.answered);
      }
    },
  };
}

function optionsOf(
  call: Pick<ModelCall, 'messages'> & ModelSettings,
  adapter: Adapter,
  { abortSignal, thinking }: { abortSignal?: AbortSignal; thinking?: number | undefined },
): LanguageModelV4CallOptions {
  const { messages, maxTokens, temperature, topP, stop, tools = [], toolChoice, responseFormat } = call;
  return {
    prompt: adapter.promptOf(messages),
    // The package adds the budget again.
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens - (thinking ?? 0) }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...(tools.length === 0 ? {} : { tools: tools.map(packageTool) }),
    ...(toolChoice === undefined ? {} : { toolChoice: packageToolChoice(toolChoice) }),
    ...(responseFormat === undefined ? {} : { responseFormat: packageFormat(responseFormat) }),
    ...settingsOf(call, adapter, thinking),
    ...(abortSignal && { abortSignal }),
  };
}

function settingsOf(settings: ModelSettings, adapter: Adapter, thinking: number | undefined) {
  if (thinking === undefined || adapter.thinkingBudget === undefined) return adapter.optionsOf(settings);
  const { provider } = settings;
  const { providerOptions } = adapter.optionsOf({ ...settings, reasoningEffort: undefined });
  return {
    providerOptions: {
      ...providerOptions,
      [provider]: { ...providerOptions?.[provider], ...adapter.thinkingBudget.of(thinking) },
    },
  };
}

/**
 * The tokens that a call may think with, so that thinking and answer together keep to its cap: at most four fifths of it. Undefined where
 * the package adds nothing to the cap, `no room` where the cap is not above the vendor's minimum.
 */
async function thinkingWithinCap(settings: ModelSettings, adapter: Adapter): Promise<number | 'no room' | undefined> {
  const { maxTokens, reasoningEffort } = settings;
  const { thinkingBudget } = adapter;
  if (thinkingBudget === undefined || maxTokens === undefined || reasoningEffort === undefined) return undefined;
  const wanted = thinkingBudget.in((await rehearse(settings, adapter)).body);
  if (wanted === undefined) return undefined;
  if (maxTokens <= thinkingBudget.min) return 'no room';
  return Math.min(wanted, Math.max(thinkingBudget.min, Math.floor(maxTokens * 0.8)));
}

/** What the package would send, and what it would leave out. It is asked with a short message, and nothing is sent. */
async function rehearse(
  { messages: _, ...settings }: ModelSettings & Partial<Pick<ModelCall, 'messages'>>,
  adapter: Adapter,
  thinking?: number,
): Promise<{ body: unknown; warnings: readonly SharedV4Warning[] }> {
  let body: unknown;
  const keepBody: typeof fetch = async (_input, init) => {
    body = parsed(String(init?.body));
    return new Response('', { headers: { 'content-type': 'text/event-stream' } });
  };
  const access = { model: settings.model, apiKey: 'none', baseUrl: adapter.defaultBaseUrl, fetch: keepBody };
  const call = { ...settings, messages: [{ role: 'user' as const, content: 'x' }] };
  const warnings: SharedV4Warning[] = [];
  try {
    const model = await adapter.languageModel(access);
    const { stream } = await model.doStream(optionsOf(call, adapter, { thinking }));
    for await (const part of stream) {
      if (part.type !== 'stream-start') continue;
      warnings.push(...part.warnings);
      break;
    }
  } catch {
    // A schema that the package cannot write: it sends nothing then, and the call is refused.
  }
  return { body, warnings };
}

function packageTool({ name, description, inputSchema, strict }: Tool): LanguageModelV4FunctionTool {
  return {
    type: 'function',
    name,
    inputSchema,
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
  };
}

function packageToolChoice(choice: NonNullable<ModelCall['toolChoice']>): LanguageModelV4ToolChoice {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.name };
}

function packageFormat({ schema, name, description }: JsonFormat) {
  return {
    type: 'json' as const,
    ...(schema === undefined ? {} : { schema }),
    ...(name === undefined ? {} : { name }),
    ...(description === undefined ? {} : { description }),
  };
}

/** The name in `ModelCall` of a setting that a package leaves out. */
function settingOf(warning: SharedV4Warning, { reasoningEffort }: ModelSettings): string[] {
  // It takes the nearest effort. To a client that wants no reasoning any other is none that it asked for.
  if (warning.type === 'compatibility' && warning.feature === 'reasoning' && reasoningEffort === 'none') {
    return ['reasoningEffort'];
  }
  if (warning.type !== 'unsupported') return [];
  const names: Readonly<Record<string, string>> = { stopSequences: 'stop', reasoning: 'reasoningEffort' };
  return [names[warning.feature] ?? warning.feature];
}

/** A base URL without a path gets the vendor's default path, because users write it both ways. */
function withVersion(baseUrl: string, { defaultBaseUrl }: Adapter): string {
  const url = new URL(baseUrl);
  return url.pathname === '/' ? `${url.origin}${new URL(defaultBaseUrl).pathname}` : baseUrl.replace(/\/+$/, '');
}
