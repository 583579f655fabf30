import type { Agent, AgentInput } from '@annals/client';
import { mask } from '../../api/mask.ts';
import type { Provider } from './agent-texts.ts';

type LlmConfig = Agent['llmConfig'];

/** A text in a language, as it is being written. */
export interface DraftText {
  readonly language: string;
  readonly text: string;
}

/** An agent as it is being written. Numbers are texts, so that a half-written one stays as it is. */
export interface AgentDraft {
  readonly id: string;
  readonly name: readonly DraftText[];
  readonly description: readonly DraftText[];
  readonly enabled: boolean;
  readonly userPrompt: string;
  readonly provider: Provider;
  readonly model: string;
  readonly temperature: string;
  readonly maxTokens: string;
  readonly contextTokens: string;
  /** A new key. Empty: the one that is stored stays. */
  readonly apiKey: string;
  readonly address: string;
  readonly readsHistory: boolean;
  /** Whether what it finds in the history may go to servers of tools. */
  readonly allowsHistoryWithTools: boolean;
}

export const emptyDraft: AgentDraft = {
  id: '',
  name: [{ language: 'en', text: '' }],
  description: [],
  enabled: true,
  userPrompt: '',
  provider: 'shared',
  model: '',
  temperature: '',
  maxTokens: '',
  contextTokens: '',
  apiKey: '',
  address: '',
  readsHistory: true,
  allowsHistoryWithTools: false,
};

export function draftOf({
  id,
  name,
  description = {},
  enabled,
  userPrompt,
  llmConfig,
  nativeTools,
  allowHistoryWithTools = false,
}: Agent): AgentDraft {
  const { provider, model = '', temperature, maxTokens, contextTokens } = llmConfig;
  return {
    id,
    name: textsOf(name),
    description: textsOf(description),
    enabled,
    userPrompt,
    provider,
    model,
    temperature: textOf(temperature),
    maxTokens: textOf(maxTokens),
    contextTokens: textOf(contextTokens),
    apiKey: '',
    address: addressOf(llmConfig) ?? '',
    readsHistory: nativeTools.length > 0,
    allowsHistoryWithTools: allowHistoryWithTools,
  };
}

/** What is sent for a draft. `current` is the agent that is replaced: what the form does not show stays as it is. */
export function inputOf(draft: AgentDraft, current: Agent | undefined): AgentInput {
  const tools =
    current !== undefined && current.nativeTools.length > 0 ? current.nativeTools : (['change-history'] as const);
  return {
    name: Object.fromEntries(draft.name.map(({ language, text }) => [language, text])),
    ...(draft.description.length === 0
      ? {}
      : { description: Object.fromEntries(draft.description.map(({ language, text }) => [language, text])) }),
    enabled: draft.enabled,
    userPrompt: draft.userPrompt,
    // An agent of an earlier version may have others, which the service refuses.
    triggers: (current?.triggers ?? []).filter((trigger) => trigger.type === 'endpoint'),
    llmConfig: llmConfigOf(draft, draft.apiKey !== '' ? draft.apiKey : keepsKey(draft, current) ? mask : undefined),
    nativeTools: draft.readsHistory ? [...tools] : [],
    ...(current?.mcpServers === undefined ? {} : { mcpServers: current.mcpServers }),
    ...(draft.allowsHistoryWithTools ? { allowHistoryWithTools: true } : {}),
    ...(current === undefined ? {} : { metadata: { version: current.metadata.version } }),
  };
}

function llmConfigOf(draft: AgentDraft, key: string | undefined): LlmConfig {
  const { provider, model, address } = draft;
  const settings = {
    ...numberOf('temperature', draft.temperature),
    ...numberOf('maxTokens', draft.maxTokens),
    ...numberOf('contextTokens', draft.contextTokens),
  };
  const apiKey = key === undefined ? {} : { apiKey: key };
  switch (provider) {
    case 'shared':
      return { provider, ...(model === '' ? {} : { model }), ...settings };
    case 'self_hosted':
      return { provider, model, baseUrl: address, ...apiKey, ...settings };
    case 'self_hosted_ollama':
    case 'self_hosted_vllm':
      return { provider, model, selfHostedParams: { url: address }, ...apiKey, ...settings };
    default:
      return { provider, model, apiKey: key ?? '', ...settings };
  }
}

/** The address of the server that the tenant names; undefined where it names none. */
export function addressOf(llmConfig: LlmConfig): string | undefined {
  if ('baseUrl' in llmConfig) return llmConfig.baseUrl;
  return 'selfHostedParams' in llmConfig ? llmConfig.selfHostedParams.url : undefined;
}

export function hasKey(llmConfig: LlmConfig): boolean {
  return 'apiKey' in llmConfig && llmConfig.apiKey !== undefined;
}

export function isSelfHosted(provider: Provider): boolean {
  return provider === 'self_hosted' || provider === 'self_hosted_ollama' || provider === 'self_hosted_vllm';
}

/** A stored key belongs to its provider. */
export function keepsKey({ provider }: AgentDraft, current: Agent | undefined): boolean {
  return current !== undefined && hasKey(current.llmConfig) && current.llmConfig.provider === provider;
}

function textsOf(texts: Readonly<Record<string, string>>): DraftText[] {
  return Object.entries(texts).map(([language, text]) => ({ language, text }));
}

function textOf(number: number | undefined): string {
  return number === undefined ? '' : String(number);
}

function numberOf<Name extends string>(name: Name, text: string): Partial<Record<Name, number>> {
  const made: Partial<Record<Name, number>> = {};
  if (text.trim() !== '') made[name] = Number(text);
  return made;
}
