import type { ErrorDetail } from '../../core/errors.ts';
import { mask } from '../../core/mask.ts';
import { shownName } from '../../recording/name-fault.ts';
import type { AgentDocument } from './answer-schemas.ts';
import { addressOf, type LlmConfig } from './llm-config.ts';
import type { AgentBody } from './schemas.ts';

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

/** The name for change entries and e-mails: the English one, or else the first. */
export function displayName({ name }: Pick<AgentDocument, 'name'>): string | undefined {
  return shownName(name.en ?? Object.values(name)[0]);
}
