import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
} from '@ai-sdk/provider';
import { type Adapter, cacheControlOf } from './adapter.ts';
import type { JsonFormat, ModelCall, ModelSettings, Tool } from './port.ts';

/** A call in the format of the provider packages. `thinking` is the budget from `thinkingWithinCap`. */
export function optionsOf(
  call: Pick<ModelCall, 'messages'> & ModelSettings,
  adapter: Adapter,
  { abortSignal, thinking }: { abortSignal?: AbortSignal; thinking?: number | undefined },
): LanguageModelV4CallOptions {
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
