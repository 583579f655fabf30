import type { Attacker } from './attack.ts';

/** Makes an agent whose model the attacker runs itself, at that address. */
export async function makeAgent(
  { tenant, call }: Pick<Attacker, 'tenant' | 'call'>,
  id: string,
  modelUrl: string,
): Promise<void> {
  const llmConfig = { provider: 'self_hosted', model: 'm', apiKey: 'sk-own', baseUrl: `${modelUrl}/v1` };
  const body = JSON.stringify({ name: { en: id }, nativeTools: ['change-history'], llmConfig });
  const response = await call(`/ai-service/${tenant}/agentic/agents/${id}`, { method: 'PUT', body });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`no agent: ${response.status} ${text}`);
}
