import { type Static, type TUnsafe, Type } from 'typebox';
import { mask } from '../../core/sealing.ts';
import { maxServerAddress, serverAddressPattern } from '../../outbound/addresses.ts';
import { unsupportedOfLlmConfig, unsupportedOfSelfHosted } from './unsupported-members.ts';

const address = {
  maxLength: maxServerAddress,
  pattern: serverAddressPattern,
  'x-must': 'be a URL that begins with http:// or https://, without user, query and fragment',
};

const model = Type.String({ minLength: 1, maxLength: 256, description: 'The name that its provider uses.' });

const apiKey = Type.String({
  pattern: '^[\\x21-\\x7e]{1,4096}$',
  'x-must': 'be 1 to 4096 visible ASCII characters without blanks',
  description: `Stored encrypted and never shown: answers have "${mask}". Send this value back to keep the key.`,
});

const baseUrl = Type.String({
  ...address,
  description: 'The service refuses private addresses unless the operator allows them.',
  examples: ['https://models.example.com/v1'],
});

const selfHostedParams = Type.Object(
  {
    url: Type.String({ ...address, description: 'As `baseUrl`.', examples: ['https://ollama.example.com'] }),
    ...unsupportedOfSelfHosted,
  },
  { $id: 'SelfHostedParams', additionalProperties: false },
);

const settings = {
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  maxTokens: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'The maximum number of tokens of an answer.' }),
  ),
  contextTokens: Type.Optional(
    Type.Integer({
      minimum: 256,
      maximum: 10_000_000,
      description:
        'The maximum number of tokens of the model, including the answer. The service leaves out earlier messages of a session that do not fit.',
    }),
  ),
  ...unsupportedOfLlmConfig,
};

const vendors = Type.Union([Type.Literal('openai'), Type.Literal('anthropic'), Type.Literal('google')]);
const servers = Type.Union([Type.Literal('self_hosted_ollama'), Type.Literal('self_hosted_vllm')]);

const closed = { additionalProperties: false } as const;

const forms = [
  Type.Object(
    {
      provider: Type.Literal('shared'),
      model: Type.Optional(
        Type.String({ ...model, description: 'Stored but not used: the service chooses the value.' }),
      ),
      ...settings,
    },
    { $id: 'SharedLlmConfig', description: 'Uses the token, the model and the quota of the service.', ...closed },
  ),
  Type.Object(
    { provider: vendors, model, apiKey, ...settings },
    { $id: 'VendorLlmConfig', description: 'A vendor, with your own key.', ...closed },
  ),
  Type.Object(
    { provider: Type.Literal('self_hosted'), model, baseUrl, apiKey: Type.Optional(apiKey), ...settings },
    { $id: 'SelfHostedLlmConfig', description: 'Any server that speaks the chat format of `openai`.', ...closed },
  ),
  Type.Object(
    { provider: servers, model, selfHostedParams, apiKey: Type.Optional(apiKey), ...settings },
    { $id: 'NamedServerLlmConfig', description: 'The same, as clients of the API family write it.', ...closed },
  ),
] as const;

/** The members of all forms. */
export interface LlmConfig {
  provider: Static<(typeof forms)[number]>['provider'];
  model?: string;
  temperature?: number;
  maxTokens?: number;
  contextTokens?: number;
  apiKey?: string;
  baseUrl?: string;
  selfHostedParams?: { url: string };
}

/** The schema of an `llmConfig`: its members depend on the provider. */
export const LlmConfigSchema: TUnsafe<LlmConfig> = Type.Unsafe<LlmConfig>(
  Type.Union([...forms], { $id: 'LlmConfig', examples: [{ provider: 'shared' }] }),
);

/** Whether the agent calls a server that its tenant names. */
export function isSelfHosted(
  provider: LlmConfig['provider'],
): provider is Extract<LlmConfig['provider'], `self_hosted${string}`> {
  return provider === 'self_hosted' || provider === 'self_hosted_ollama' || provider === 'self_hosted_vllm';
}

/**
 * The address of that server, which clients write in one of two ways (contract 8); undefined where there is none.
 *
 * @example
 * addressOf({ provider: 'self_hosted', baseUrl: 'http://models/v1' }); // 'http://models/v1'
 * addressOf({ provider: 'self_hosted_ollama', selfHostedParams: { url: 'http://ollama:11434' } }); // 'http://ollama:11434'
 */
export function addressOf(config: LlmConfig): string | undefined {
  return config.provider === 'self_hosted' ? config.baseUrl : config.selfHostedParams?.url;
}

/** The member of a body that contains that address. */
export function addressField(provider: LlmConfig['provider'] | undefined): string {
  return provider === 'self_hosted' ? 'llmConfig.baseUrl' : 'llmConfig.selfHostedParams.url';
}
