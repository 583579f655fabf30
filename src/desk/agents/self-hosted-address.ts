import type { LlmConfig } from './llm-config.ts';

type Provider = LlmConfig['provider'];

/** Whether the agent calls a server that its tenant names. */
export function isSelfHosted(provider: Provider): provider is Extract<Provider, `self_hosted${string}`> {
  return provider === 'self_hosted' || provider === 'self_hosted_ollama' || provider === 'self_hosted_vllm';
}

/**
 * The address of that server, which clients write in one of two ways (contract 8); undefined where there is none.
 *
 * @example
 * addressOf({ provider: 'self_hosted', baseUrl: 'http://models/v1' }); // 'http://models/v1'
 * addressOf({ provider: 'self_hosted_ollama', selfHostedParams: { url: 'http://ollama:11434' } }); // 'http://ollama:11434'
 */
export function addressOf({ provider, baseUrl, selfHostedParams }: LlmConfig): string | undefined {
  return provider === 'self_hosted' ? baseUrl : selfHostedParams?.url;
}
