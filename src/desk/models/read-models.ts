import { type Static, Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import { duplicates, readCheckedFile } from '../checked-file.ts';

/** The wire identifiers of spec B's `provider_a`, `provider_b` and `provider_c`, in listing order. */
const listedProviders = ['openai', 'anthropic', 'google'] as const;

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

/**
 * The default models, without ANNALS_MODELS_FILE: the text models that the installed provider packages name, except
 * dated snapshots and superseded previews. For `openai` only those of chat completions, where the `…-pro` models answer
 * 404. `thinking` is left out where the packages do not state it.
 */
export const builtInModels: ModelList = [
  {
    provider: 'openai',
    models: [
      { id: 'gpt-6-astra', name: 'GPT-6 Astra', thinking: true },
      { id: 'gpt-6.1-sol', name: 'GPT-6.1 Sol', thinking: true },
      { id: 'gpt-6.1-terra', name: 'GPT-6.1 Terra', thinking: true },
      { id: 'gpt-6-sol', name: 'GPT-6 Sol', thinking: true },
      { id: 'gpt-6-luna', name: 'GPT-6 Luna', thinking: true },
      { id: 'gpt-5.6', name: 'GPT-5.6', thinking: true },
      { id: 'gpt-5.6-sol', name: 'GPT-5.6 Sol', thinking: true },
      { id: 'gpt-5.6-terra', name: 'GPT-5.6 Terra', thinking: true },
      { id: 'gpt-5.6-luna', name: 'GPT-5.6 Luna', thinking: true },
      { id: 'gpt-5.5', name: 'GPT-5.5', thinking: true },
      { id: 'gpt-5.4', name: 'GPT-5.4', thinking: true },
      {
        id: 'gpt-5.4-mini',
        name: 'GPT-5.4 mini',
        description: 'Small and general-purpose. The default model of completions.',
        thinking: true,
      },
      { id: 'gpt-5.4-nano', name: 'GPT-5.4 nano', description: 'The smallest of its family.', thinking: true },
      { id: 'gpt-5.2', name: 'GPT-5.2', thinking: true },
      { id: 'gpt-5.1', name: 'GPT-5.1', thinking: true },
      { id: 'gpt-5', name: 'GPT-5', thinking: true },
      { id: 'gpt-5-mini', name: 'GPT-5 mini', thinking: true },
      { id: 'gpt-5-nano', name: 'GPT-5 nano', thinking: true },
      { id: 'gpt-4.1', name: 'GPT-4.1', thinking: false },
      { id: 'gpt-4.1-mini', name: 'GPT-4.1 mini', thinking: false },
      { id: 'gpt-4.1-nano', name: 'GPT-4.1 nano', thinking: false },
      { id: 'gpt-4o', name: 'GPT-4o', thinking: false },
      { id: 'gpt-4o-mini', name: 'GPT-4o mini', thinking: false },
    ],
  },
  {
    provider: 'anthropic',
    models: [
      { id: 'claude-opus-5-5', name: 'Claude Opus 5.5', thinking: true },
      { id: 'claude-opus-5', name: 'Claude Opus 5', thinking: true },
      { id: 'claude-sonnet-5-5', name: 'Claude Sonnet 5.5', thinking: true },
      { id: 'claude-sonnet-5', name: 'Claude Sonnet 5', thinking: true },
      { id: 'claude-haiku-5-5', name: 'Claude Haiku 5.5', thinking: true },
      { id: 'claude-fable-5-2', name: 'Claude Fable 5.2', thinking: true },
      { id: 'claude-fable-5-1', name: 'Claude Fable 5.1', thinking: true },
      { id: 'claude-fable-5', name: 'Claude Fable 5', thinking: true },
      { id: 'claude-opus-4-8', name: 'Claude Opus 4.8', thinking: true },
      { id: 'claude-opus-4-7', name: 'Claude Opus 4.7', thinking: true },
      { id: 'claude-opus-4-6', name: 'Claude Opus 4.6', thinking: true },
      { id: 'claude-sonnet-4-6', name: 'Claude Sonnet 4.6', thinking: true },
      { id: 'claude-opus-4-5', name: 'Claude Opus 4.5', thinking: true },
      { id: 'claude-sonnet-4-5', name: 'Claude Sonnet 4.5', thinking: true },
      { id: 'claude-haiku-4-5', name: 'Claude Haiku 4.5', thinking: true },
    ],
  },
  {
    provider: 'google',
    models: [
      { id: 'gemini-4-argon', name: 'Gemini 4 Argon' },
      { id: 'gemini-4-carbon', name: 'Gemini 4 Carbon' },
      { id: 'gemini-4-hydrogen', name: 'Gemini 4 Hydrogen', thinking: true },
      { id: 'gemini-3.8-flash', name: 'Gemini 3.8 Flash' },
      { id: 'gemini-3.7-flash', name: 'Gemini 3.7 Flash' },
      { id: 'gemini-3.6-flash', name: 'Gemini 3.6 Flash' },
      { id: 'gemini-3.5-flash', name: 'Gemini 3.5 Flash' },
      { id: 'gemini-3.5-flash-lite', name: 'Gemini 3.5 Flash-Lite' },
      { id: 'gemini-2.5-pro', name: 'Gemini 2.5 Pro', thinking: true },
      { id: 'gemini-2.5-flash', name: 'Gemini 2.5 Flash', thinking: true },
      { id: 'gemini-2.5-flash-lite', name: 'Gemini 2.5 Flash-Lite', thinking: true },
    ],
  },
];

/**
 * The listed models, from ANNALS_MODELS_FILE or else the built-in catalogue: always the three provider groups, in
 * order. Throws a ConfigError with the faults of the file.
 */
export async function readModels(file: string | undefined): Promise<ModelList> {
  if (file === undefined) return builtInModels;
  const providerGroups = await readCheckedFile(file, {
    setting: 'ANNALS_MODELS_FILE',
    schema: ModelList,
    what: 'a list of models',
    faultsOf: (groups) => duplicates(namesOf(groups)).map((name) => `names ${name} twice`),
  });
  return listedProviders.map((provider) => ({
    provider,
    models: providerGroups.find((group) => group.provider === provider)?.models ?? [],
  }));
}

function namesOf(groups: ModelList): string[] {
  return groups.flatMap(({ provider, models }) => [
    `the provider ${provider}`,
    ...models.map(({ id }) => `the model ${id} of ${provider}`),
  ]);
}
