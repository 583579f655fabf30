import type { ErrorDetail } from '../../core/errors.ts';
import { mask } from '../../core/sealing.ts';
import { shownName } from '../../recording/member-faults.ts';
import { faultsOfServers, hasTools, shownServers } from '../mcp/servers.ts';
import type { AgentDocument } from './answer-schemas.ts';
import { addressField, addressOf, type LlmConfig } from './llm-config.ts';
import { type AgentBody, changeHistoryTool, type NativeTool } from './schemas.ts';

/** The content of a body, without the fields that the service sets. `current` is the stored agent. */
export function contentOf(body: AgentBody, current: AgentDocument | undefined) {
  const { name, description, userPrompt = '', triggers = [], nativeTools = [] } = body;
  const { provider, model, temperature, maxTokens, contextTokens, apiKey, baseUrl, selfHostedParams }: LlmConfig =
    body.llmConfig ?? { provider: 'shared' };
  const servers = body.mcpServers ?? [];
  // Drops members that are accepted only if empty.
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
    ...(servers.length > 0 && { mcpServers: shownServers(servers, current?.mcpServers) }),
    ...(body.allowHistoryWithTools === true && { allowHistoryWithTools: true }),
  };
}

/** The faults that the schema cannot find. */
export function faultsOfBody(body: AgentBody): ErrorDetail[] {
  const { llmConfig, mcpServers, nativeTools = [], allowHistoryWithTools = false } = body;
  const address = llmConfig && addressOf(llmConfig);
  const field = addressField(llmConfig?.provider);
  return [
    ...(address === undefined || URL.canParse(address) ? [] : [{ field, message: 'must be a URL' }]),
    ...faultsOfServers(mcpServers ?? []),
    ...(hasTools(mcpServers) && offersHistoryTool(nativeTools) && !allowHistoryWithTools ? [historyWithTools] : []),
  ];
}

const historyWithTools: ErrorDetail = {
  field: 'allowHistoryWithTools',
  message: `must be true where an agent has ${changeHistoryTool} and tools of other servers: what it finds may go to these`,
};

/** Whether the agent has the history tool, in either form (contract 8). */
export function offersHistoryTool(nativeTools: readonly NativeTool[]): boolean {
  return nativeTools.some((tool) => (typeof tool === 'string' ? tool : tool.id) === changeHistoryTool);
}

/** The name in change entries and e-mails: the English one, or else the first. */
export function displayName({ name }: Pick<AgentDocument, 'name'>): string | undefined {
  return shownName(name.en ?? Object.values(name)[0]);
}
