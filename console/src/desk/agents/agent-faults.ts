import type { Agent } from '@annals/client';
import { countText } from '../../components/numbers.ts';
import { type AgentDraft, type DraftText, isSelfHosted, keepsKey } from './agent-draft.ts';

/** The parts of the form that can be wrong. */
export type AgentField = Exclude<keyof AgentDraft, 'enabled' | 'readsHistory' | 'allowsHistoryWithTools' | 'provider'>;

export type AgentFaults = Partial<Record<AgentField, string>>;

/** What the service would refuse, told while one types. The service has the last word. */
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

/** The part of the form that a field of the service stands for; undefined where the form has none. */
export function partOf(field: string): AgentField | undefined {
  const name = field.replace(/^llmConfig\./, '').split('.')[0] ?? '';
  if (name === 'baseUrl' || name === 'selfHostedParams') return 'address';
  return parts.find((part) => part === name);
}

const parts: readonly AgentField[] = [
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
