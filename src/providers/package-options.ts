import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
} from '@ai-sdk/provider';
import { type Adapter, cacheControlOf, type ProviderSettings } from './adapter.ts';
import type { JsonFormat, ModelCall, ModelSettings, Tool } from './port.ts';

/** What a rehearsal of the call adds to it. */
interface Rehearsed {
  /** The budget from `thinkingWithinCap`. */
  readonly thinking?: number | undefined;
  /** The settings that show its reasoning. */
  readonly shown?: ProviderSettings | undefined;
}

/** A call in the format of the provider packages. */
export function optionsOf(
  call: Pick<ModelCall, 'messages'> & ModelSettings,
  adapter: Adapter,
  { abortSignal, ...rehearsed }: { abortSignal?: AbortSignal } & Rehearsed,
): LanguageModelV4CallOptions {
  const { thinking } = rehearsed;
  const { messages, maxTokens, temperature, topP, stop, tools = [], toolChoice, responseFormat } = call;
  return {
    prompt: adapter.promptOf(messages),
    // Without the budget, which the package adds again.
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens - (thinking ?? 0) }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(stop === undefined ? {} : { stopSequences: [...stop] }),
    ...(tools.length === 0 ? {} : { tools: tools.map(packageTool) }),
    ...(toolChoice === undefined ? {} : { toolChoice: packageToolChoice(toolChoice) }),
    ...(responseFormat === undefined ? {} : { responseFormat: packageFormat(responseFormat) }),
    ...settingsOf(call, adapter, rehearsed),
    ...(abortSignal && { abortSignal }),
  };
}

function settingsOf(settings: ModelSettings, adapter: Adapter, { thinking, shown }: Rehearsed) {
  const budget = thinking === undefined ? undefined : adapter.thinkingBudget?.of(thinking);
  const added = budget ?? shown;
  if (added === undefined) return adapter.optionsOf(settings);
  const { provider } = settings;
  const options = adapter.optionsOf(budget === undefined ? settings : { ...settings, reasoningEffort: undefined });
  const { providerOptions } = options;
  return {
    ...options,
    providerOptions: { ...providerOptions, [provider]: { ...providerOptions?.[provider], ...added } },
  };
}

function packageTool({ name, description, inputSchema, strict, cache }: Tool): LanguageModelV4FunctionTool {
  return {
    type: 'function',
    name,
    inputSchema,
    ...(description === undefined ? {} : { description }),
    ...(strict === undefined ? {} : { strict }),
    ...(cache === undefined ? {} : { providerOptions: { anthropic: { cacheControl: cacheControlOf(cache) } } }),
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
