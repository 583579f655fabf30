import { type Static, Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';

/** The wire identifiers of spec B's `provider_a`, `provider_b` and `provider_c`, in listing order. */
export const listedProviders = ['openai', 'anthropic', 'google'] as const;

const Model = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    name: Type.String({ minLength: 1, description: 'For people.' }),
    description: Type.Optional(Type.String()),
    thinking: Type.Optional(Type.Boolean({ description: 'Whether the model supports extended reasoning, if known.' })),
  },
  { $id: 'LanguageModel', additionalProperties: false },
);

const ProviderGroup = Type.Object(
  {
    provider: Type.Union([Type.Literal('openai'), Type.Literal('anthropic'), Type.Literal('google')]),
    models: Type.Array(Model),
  },
  { $id: 'ProviderModels', additionalProperties: false },
);

/** The model list of spec B, and the content of ANNALS_MODELS_FILE. */
export const ModelList = Type.Array(ProviderGroup, {
  examples: [[{ provider: 'openai', models: [{ id: 'gpt-5.4-mini', name: 'GPT-5.4 mini', thinking: true }] }]],
});

export type ModelList = Static<typeof ModelList>;

export const ModelsPath = Type.Object({ tenant: TenantName });
