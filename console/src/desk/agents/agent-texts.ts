import type { Agent } from '@annals/client';

type Texts = Readonly<Record<string, string>> | undefined;

/** The text of the reader's language, the English one, or the first. */
export function textFor(texts: Texts): string | undefined {
  if (texts === undefined) return undefined;
  const language = navigator.language;
  return texts[language] ?? texts[language.split('-')[0] ?? ''] ?? texts.en ?? Object.values(texts)[0];
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
