import type { Agent, AgentInput } from '@annals/client';
import { countText, textFor } from '../../components/numbers.ts';
import { mask } from '../../data/json-editor/document-text.ts';

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

/** What an agent is called. */
export function agentTitle({ id, name }: Pick<Agent, 'id' | 'name'>): string {
  return textFor(name) ?? id;
}

export type Provider = Agent['llmConfig']['provider'];

/** The providers, as the console calls them. */
export const providerNames: Readonly<Record<Provider, string>> = {
  shared: 'Shared token of the service',
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  google: 'Google',
  self_hosted: 'Self-hosted server',
  self_hosted_ollama: 'Self-hosted Ollama',
  self_hosted_vllm: 'Self-hosted vLLM',
};

/** The formParts of the form that can be wrong. */
type AgentField = Exclude<keyof AgentDraft, 'enabled' | 'readsHistory' | 'allowsHistoryWithTools' | 'provider'>;

export type AgentFaults = Partial<Record<AgentField, string>>;

/** What the service would refuse, shown while typing. The service has the last word. */
export function faultsOf(draft: AgentDraft, current: Agent | undefined): AgentFaults {
  const found: [AgentField, string | undefined][] = [
    ['id', current === undefined ? faultOfId(draft.id) : undefined],
    ['name', draft.name.length === 0 ? 'Write a name in one language at least.' : faultOfTexts(draft.name)],
    ['description', faultOfTexts(draft.description)],
    ['userPrompt', draft.userPrompt.length > 100_000 ? 'At most 100,000 characters.' : undefined],
    ['model', faultOfModel(draft)],
    ['apiKey', faultOfKey(draft, current)],
    ['address', isSelfHosted(draft.provider) ? faultOfAddress(draft.address) : undefined],
    ['temperature', faultOfNumber(draft.temperature, { min: 0, max: 2, whole: false })],
    ['maxTokens', faultOfNumber(draft.maxTokens, { min: 1, max: 1_000_000, whole: true })],
    ['contextTokens', faultOfNumber(draft.contextTokens, { min: 256, max: 10_000_000, whole: true })],
  ];
  return Object.fromEntries(found.filter(([, fault]) => fault !== undefined));
}

/** The part of the form for a field of the service; undefined if the form has none. */
export function partOf(field: string): AgentField | undefined {
  const name = field.replace(/^llmConfig\./, '').split('.')[0] ?? '';
  if (name === 'baseUrl' || name === 'selfHostedParams') return 'address';
  return formParts.find((part) => part === name);
}

const formParts: readonly AgentField[] = [
  'id',
  'name',
  'description',
  'userPrompt',
  'model',
  'temperature',
  'maxTokens',
  'contextTokens',
  'apiKey',
];

function faultOfId(id: string): string | undefined {
  if (id === '') return 'Write an id, such as price-desk. It cannot be changed later.';
  if (/[\p{Cc}\p{Cs}]/u.test(id)) return 'An id has no control characters.';
  if (new TextEncoder().encode(id).length > 255) return 'At most 255 bytes of UTF-8.';
  return undefined;
}

function faultOfTexts(texts: readonly DraftText[]): string | undefined {
  const languages = texts.map(({ language }) => language);
  if (languages.some((language) => !/^[A-Za-z0-9_-]{1,35}$/.test(language)))
    return 'A language is a code, such as en or de-AT.';
  if (new Set(languages).size < languages.length) return 'Each language can be listed once.';
  if (texts.some(({ text }) => text.trim() === '')) return 'Write the text, or remove its language.';
  if (texts.some(({ text }) => text.length > 10_000)) return 'At most 10,000 characters.';
  return undefined;
}

function faultOfModel({ provider, model }: AgentDraft): string | undefined {
  if (model.length > 256) return 'At most 256 characters.';
  return provider !== 'shared' && model === '' ? 'Name the model as its provider calls it.' : undefined;
}

function faultOfKey(draft: AgentDraft, current: Agent | undefined): string | undefined {
  const { provider, apiKey } = draft;
  if (provider === 'shared') return undefined;
  if (apiKey === '')
    return isSelfHosted(provider) || keepsKey(draft, current) ? undefined : 'This provider needs your key.';
  return /^[\x21-\x7e]{1,4096}$/.test(apiKey)
    ? undefined
    : 'A key consists of visible ASCII characters, without spaces.';
}

function faultOfAddress(address: string): string | undefined {
  const url = URL.parse(address);
  const isPlain = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (isPlain && /^https?:$/.test(url.protocol) && address.length <= 2_048) return undefined;
  return 'Write a URL that begins with http:// or https://, without user, query and fragment.';
}

function faultOfNumber(
  text: string,
  { min, max, whole }: { min: number; max: number; whole: boolean },
): string | undefined {
  if (text.trim() === '') return undefined;
  const number = Number(text);
  if (number >= min && number <= max && (!whole || Number.isInteger(number))) return undefined;
  return `A ${whole ? 'whole ' : ''}number from ${countText(min)} to ${countText(max)}.`;
}
