import type { ErrorDetail } from '../../core/errors.ts';
import { mask } from '../../core/mask.ts';
import type { AgentDocument } from './answer-schemas.ts';
import { addressOf, type LlmConfig } from './llm-config.ts';
import type { AgentBody } from './schemas.ts';

const maxAgentIdBytes = 255;

/** What is wrong with an id, or undefined. An index entry and a cursor have a maximum size, and the id must fit. */
export function faultOfAgentId(id: string): string | undefined {
  if (id === '') return 'must not be empty';
  if (/[\p{Cc}\p{Surrogate}]/u.test(id)) return 'must not have control characters';
  if (Buffer.byteLength(id) > maxAgentIdBytes) return `must have at most ${maxAgentIdBytes} bytes of UTF-8`;
  return undefined;
}

/** The content that a body asks for, without the fields that the service sets. `current` is the stored agent. */
export function contentOf(body: AgentBody, current: AgentDocument | undefined) {
  const { name, description, userPrompt = '', triggers = [], nativeTools = [] } = body;
  const { provider, model, temperature, maxTokens, contextTokens, apiKey, baseUrl, selfHostedParams }: LlmConfig =
    body.llmConfig ?? { provider: 'shared' };
  // Without what is taken because it is empty.
  const params = selfHostedParams && { selfHostedParams: { url: selfHostedParams.url } };
  const llmConfig = { provider, model, temperature, maxTokens, contextTokens, baseUrl, ...params };
  return {
    name,
    description,
    enabled: body.enabled ?? current?.enabled ?? true,
    userPrompt,
    triggers,
    llmConfig: { ...llmConfig, ...(apiKey === undefined ? {} : { apiKey: mask }) },
    nativeTools,
  };
}

/** The fault that the schema alone cannot find: an address that is no URL. */
export function faultsOfBody({ llmConfig }: Pick<AgentBody, 'llmConfig'>): ErrorDetail[] {
  const address = llmConfig && addressOf(llmConfig);
  if (address === undefined || URL.canParse(address)) return [];
  const field = llmConfig?.provider === 'self_hosted' ? 'llmConfig.baseUrl' : 'llmConfig.selfHostedParams.url';
  return [{ field, message: 'must be a URL' }];
}

/**
 * The name for change entries and e-mails (contract 6: at most 1,000 characters, no NUL): the English one, or
 * else the first.
 */
export function displayName({ name }: Pick<AgentDocument, 'name'>): string | undefined {
  const text = name.en ?? Object.values(name)[0];
  if (text === undefined || /[\0\p{Surrogate}]/u.test(text)) return undefined;
  return [...text].slice(0, 1_000).join('');
}
