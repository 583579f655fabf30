import { type Static, Type } from 'typebox';
import { TenantName } from '../http/tenant-name.ts';
import { fieldsParameter, filterParameter, pagingParameters } from '../pagination/parameters.ts';
import { mask } from '../recording/mask.ts';

const AgentId = Type.String({ $id: 'AgentId', description: 'At most 255 bytes of UTF-8.', examples: ['price-desk'] });

export const AgentsPath = Type.Object({ tenant: TenantName });
export const AgentPath = Type.Object({ tenant: TenantName, id: AgentId });

const Texts = (description: string) =>
  Type.Record(Type.String({ pattern: '^[A-Za-z0-9_-]{1,35}$' }), Type.String({ maxLength: 10_000 }), {
    description,
    additionalProperties: false,
    examples: [{ en: 'Price desk' }],
  });

/** The only tool that the service itself offers. */
export const changeHistoryTool = 'change-history';

const ToolName = Type.Literal(changeHistoryTool);
const NativeTool = Type.Union([ToolName, Type.Object({ id: ToolName })]);
export type NativeTool = Static<typeof NativeTool>;

const LlmConfig = Type.Object(
  {
    provider: Type.Union(
      [
        Type.Literal('openai'),
        Type.Literal('anthropic'),
        Type.Literal('google'),
        Type.Literal('shared'),
        Type.Literal('self_hosted'),
        Type.Literal('self_hosted_ollama'),
        Type.Literal('self_hosted_vllm'),
      ],
      {
        description:
          '`openai`, `anthropic` and `google` take a key of your own, which is required; `shared` is the token of the ' +
          'service, its model and its quota; `self_hosted` any server that speaks the chat format of `openai`, with ' +
          '`baseUrl`. `self_hosted_ollama` and `self_hosted_vllm` are the same with `selfHostedParams.url`.',
      },
    ),
    model: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'As its provider calls it. With `shared` the service chooses.',
      }),
    ),
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
    maxTokens: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1_000_000, description: 'The most tokens of an answer.' }),
    ),
    contextTokens: Type.Optional(
      Type.Integer({
        minimum: 256,
        maximum: 10_000_000,
        description:
          'What the model takes, answer included. Earlier messages of a session that do not fit are left out.',
      }),
    ),
    apiKey: Type.Optional(
      Type.String({
        pattern: '^[\\x21-\\x7e]{1,4096}$',
        'x-must': 'be 1 to 4096 visible ASCII characters without blanks',
        description: `Kept encrypted, and never shown again: answers have "${mask}", which, sent back, leaves it as it is.`,
      }),
    ),
    baseUrl: Type.Optional(
      Type.String({
        maxLength: 2_048,
        description: 'Of a `self_hosted` server. Private addresses are refused unless the operator allows them.',
        examples: ['https://models.example.com/v1'],
      }),
    ),
    selfHostedParams: Type.Optional(
      Type.Object(
        { url: Type.Optional(Type.String({ maxLength: 2_048, examples: ['https://ollama.example.com'] })) },
        { description: 'Of a `self_hosted_ollama` or `self_hosted_vllm` server; as `baseUrl`.' },
      ),
    ),
  },
  { $id: 'LlmConfig', examples: [{ provider: 'shared' }] },
);

const Metadata = Type.Object({
  version: Type.Optional(
    Type.Integer({ minimum: 1, description: 'Counts up; a write that carries another one than the current is 409.' }),
  ),
  createdAt: Type.Optional(Type.String()),
  modifiedAt: Type.Optional(Type.String()),
});

/**
 * An agent in a request. Clients may send the fields that the service sets (`metadata`, `disabledReason`) back
 * unchanged.
 */
export const AgentBody = Type.Object(
  {
    id: Type.Optional(Type.String()),
    name: Texts('By language.'),
    description: Type.Optional(Texts('By language.')),
    enabled: Type.Optional(
      Type.Boolean({ description: 'A disabled agent answers 409. Left out: as it was; a new one is.' }),
    ),
    userPrompt: Type.Optional(Type.String({ maxLength: 100_000, description: 'The instructions.' })),
    triggers: Type.Optional(Type.Array(Type.Unknown(), { maxItems: 100 })),
    llmConfig: Type.Optional(LlmConfig),
    nativeTools: Type.Optional(
      Type.Array(NativeTool, {
        uniqueItems: true,
        maxItems: 100,
        description:
          `\`${changeHistoryTool}\` lets the model ask the change history what the chatting client may. A name, or an ` +
          'object with that name as its `id`.',
      }),
    ),
    metadata: Type.Optional(Metadata),
    disabledReason: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: 'Why the service has disabled it. Read-only.' }),
    ),
  },
  {
    $id: 'AgentInput',
    examples: [
      {
        name: { en: 'Price desk' },
        enabled: true,
        userPrompt: 'You answer questions about prices in one sentence.',
        llmConfig: { provider: 'shared', temperature: 0.2, maxTokens: 512 },
        nativeTools: [changeHistoryTool],
      },
    ],
  },
);
export type AgentBody = Static<typeof AgentBody>;
export type LlmConfig = Static<typeof LlmConfig>;

export const AgentPatch = Type.Array(
  Type.Object(
    {
      op: Type.String({
        pattern: '^([Aa][Dd][Dd]|[Rr][Ee][Mm][Oo][Vv][Ee]|[Rr][Ee][Pp][Ll][Aa][Cc][Ee])$',
        'x-must': 'be ADD, REMOVE or REPLACE',
      }),
      path: Type.String({ description: 'A JSON Pointer (`/name/en`), or keys with dots between them (`name.en`).' }),
      value: Type.Optional(Type.Unknown()),
    },
    { $id: 'AgentPatchOperation' },
  ),
  {
    maxItems: 1_000,
    description: 'All of the operations or none: `ADD`, `REMOVE` or `REPLACE`.',
    examples: [[{ op: 'REPLACE', path: '/enabled', value: true }]],
  },
);
export type AgentPatch = Static<typeof AgentPatch>;

export const ListQuery = Type.Object({ ...pagingParameters, q: filterParameter, fields: fieldsParameter });
export const SearchQuery = Type.Object({ ...pagingParameters, fields: fieldsParameter });
