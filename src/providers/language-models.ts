import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { Adapter } from './adapter.ts';
import { anthropic } from './anthropic.ts';
import { DroppedSettings, thinkingWithinCap } from './dropped-settings.ts';
import { google } from './google.ts';
import { ModelRequest } from './model-request.ts';
import { openai, selfHosted } from './openai.ts';
import { answerOf, answerOfStream } from './package-answers.ts';
import { optionsOf } from './package-options.ts';
import { passThrough } from './pass-through.ts';
import {
  type Answer,
  type LanguageModels,
  type ModelCall,
  type OnText,
  ProviderError,
  type ProviderName,
  providerNames,
} from './port.ts';
import type { Transport } from './transport.ts';

export interface LanguageModelsOptions {
  /** The vendors' base URLs from the settings; undefined: the vendor's default. */
  baseUrls: Readonly<Partial<Record<ProviderName, string | undefined>>>;
  /**
   * `selfHosted` is a separate transport that checks the addresses it connects to. Without it no self-hosted server is
   * reachable.
   */
  transports: { vendors: Transport; selfHosted?: Transport };
}

/** A call in the format of its vendor's package, and its one request. */
interface PreparedCall {
  readonly adapter: Adapter;
  readonly model: LanguageModelV4;
  readonly options: LanguageModelV4CallOptions;
  readonly request: ModelRequest;
}

const adapters: Record<ProviderName, Adapter> = { openai, anthropic, google, self_hosted: selfHosted };

/** Implements the provider port with the vendors' packages. Never retries: the caller knows what a call costs. */
export function createLanguageModels({ baseUrls, transports }: LanguageModelsOptions): LanguageModels {
  const vendorUrls = Object.fromEntries(
    providerNames.map((name) => [name, withVersion(baseUrls[name] ?? adapters[name].defaultBaseUrl, adapters[name])]),
  ) as Record<ProviderName, string>;
  const droppedSettings = new DroppedSettings();

  return {
    unsupported: (settings) => droppedSettings.unsupported(settings, adapters[settings.provider]),

    async call(call, onText) {
      const adapter = adapters[call.provider];
      const transport = call.provider === 'self_hosted' ? transports.selfHosted : transports.vendors;
      if (transport === undefined) throw new ProviderError('unreachable', 'none');
      if (adapter.canBeModel?.(call.model) === false) throw new ProviderError('model_unknown', 'none');
      const baseUrl = call.baseUrl === undefined ? vendorUrls[call.provider] : withVersion(call.baseUrl, adapter);
      if (call.passThrough !== undefined) {
        return await passThrough(call, call.passThrough, { url: baseUrl, transport });
      }
      const request = new ModelRequest(call, {
        adapter,
        transport,
        streaming: onText !== undefined,
        reader: { adapter },
      });
      const model = await adapter.languageModel({
        model: call.model,
        apiKey: call.apiKey,
        baseUrl,
        fetch: request.fetch,
      });
      return await request.run(async () => {
        const thinking = await thinkingWithinCap(call, adapter);
        if (thinking === 'no room') throw new ProviderError('request_refused', 'none');
        const shown = await droppedSettings.shown(call, adapter);
        const options = optionsOf(call, adapter, { abortSignal: request.signal, thinking, shown });
        const prepared = { adapter, model, options, request };
        if (onText !== undefined) return await streamedAnswer(prepared, { ...call, onText });
        return await wholeAnswer(prepared, () => droppedSettings.dropped(call, adapter));
      });
    },
  };
}

async function streamedAnswer(
  { adapter, model, options, request }: PreparedCall,
  { onText, onReasoning, onToolCall }: Pick<ModelCall, 'onReasoning' | 'onToolCall'> & { onText: OnText },
): Promise<Answer> {
  const { stream } = await model.doStream(options);
  return await answerOfStream(stream, () => request.usage, adapter, {
    onText: (text) => request.pass(() => onText(text)),
    onReasoning: (text) => request.pass(() => onReasoning?.(text)),
    onToolCall: (piece) => request.pass(() => onToolCall?.(piece)),
  });
}

/** If our own reader has read the answer, `fetch` rejects, so that the package reads nothing. */
async function wholeAnswer(
  { adapter, model, options, request }: PreparedCall,
  dropped: () => Promise<readonly string[]>,
): Promise<Answer> {
  try {
    return answerOf(await model.doGenerate(options), request.usage, adapter);
  } catch (error) {
    const read = request.wholeAnswer;
    if (read === undefined) throw error;
    const droppedSettings = await dropped();
    return { ...read, usage: request.usage, ...(droppedSettings.length === 0 ? {} : { droppedSettings }) };
  }
}

/** A base URL without a path gets the vendor's default path, because both forms are common. */
function withVersion(baseUrl: string, { defaultBaseUrl }: Adapter): string {
  const url = new URL(baseUrl);
  return url.pathname === '/' ? `${url.origin}${new URL(defaultBaseUrl).pathname}` : baseUrl.replace(/\/+$/, '');
}
