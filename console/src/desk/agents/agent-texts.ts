import type { Agent } from '@annals/client';
import { textFor } from '../../components/texts.ts';

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
