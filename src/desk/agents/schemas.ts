import { type Static, Type } from 'typebox';
import { MetadataInput } from '../../http/body-members.ts';
import { shownText, TenantName } from '../../http/chosen-id.ts';
import { anyCase } from '../../http/openapi/components.ts';
import { McpServersInput } from '../mcp/schemas.ts';
import { LlmConfigSchema } from './llm-config.ts';
import { unsupportedOfAgents, unsupportedOfTools, unsupportedOfTriggers } from './unsupported-members.ts';

const AgentId = Type.String({ $id: 'AgentId', description: 'At most 255 bytes of UTF-8.', examples: ['price-desk'] });

export const AgentsPath = Type.Object({ tenant: TenantName });
export const AgentPath = Type.Object({ tenant: TenantName, id: AgentId });

const Texts = (description: string, options: { minProperties?: number } = {}, text: object = {}) =>
  Type.Record(Type.String({ pattern: '^[A-Za-z0-9_-]{1,35}$' }), Type.String({ maxLength: 10_000, ...text }), {
    ...options,
    description,
    additionalProperties: false,
    'x-must': 'be a map by language, such as {"en": "Price desk"}',
    examples: [{ en: 'Price desk' }],
  });

/** The service's only own tool. */
export const changeHistoryTool = 'change-history';

const ToolName = Type.Literal(changeHistoryTool);
const NativeTool = Type.Union([
  ToolName,
  Type.Object({ id: ToolName, ...unsupportedOfTools }, { $id: 'NativeToolReference', additionalProperties: false }),
]);
export type NativeTool = Static<typeof NativeTool>;

const Trigger = Type.Object(
  {
    type: Type.Literal('endpoint', {
      description: 'A call of `chat`, `chat-async` or `chat-stream`.',
      'x-must': 'be endpoint: nothing else starts an agent; call chat where the event happens',
    }),
    ...unsupportedOfTriggers,
  },
  { $id: 'AgentTrigger', additionalProperties: false },
);

/**
 * An agent in a request. Clients may send fields that the service sets (`metadata`, `disabledReason`) back unchanged.
 */
export const AgentBody = Type.Object(
  {
    id: Type.Optional(Type.String()),
    name: Texts('By language.', { minProperties: 1 }, shownText),
    description: Type.Optional(Texts('By language.')),
    enabled: Type.Optional(
      Type.Boolean({
        description:
          'A disabled agent answers 409. Without this member a new agent is enabled, and an existing agent does not change.',
      }),
    ),
    userPrompt: Type.Optional(Type.String({ maxLength: 100_000, description: 'The instructions.' })),
    triggers: Type.Optional(Type.Array(Trigger, { maxItems: 100 })),
    llmConfig: Type.Optional(LlmConfigSchema),
    nativeTools: Type.Optional(
      Type.Array(NativeTool, {
        uniqueItems: true,
        maxItems: 100,
        description:
          `Tools of the agent. \`${changeHistoryTool}\` searches the change history with the scopes of the client that chats. ` +
          'A tool is a name, or an object with the name as its `id`.',
      }),
    ),
    mcpServers: Type.Optional(McpServersInput),
    allowHistoryWithTools: Type.Optional(
      Type.Boolean({
        description:
          'Whether the agent may have tools of `mcpServers` and know of the change history, so that what it finds there may go to those ' +
          'servers. Default: false.',
      }),
    ),
    metadata: Type.Optional(MetadataInput),
    disabledReason: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: 'The reason why the service disabled the agent. Read-only: ignored in a request.',
        readOnly: true,
      }),
    ),
    ...unsupportedOfAgents,
  },
  {
    $id: 'AgentInput',
    additionalProperties: false,
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

export const AgentPatch = Type.Array(
  Type.Object(
    {
      op: anyCase(['ADD', 'REMOVE', 'REPLACE'], { description: 'Case-insensitive.' }),
      path: Type.String({ description: 'A JSON Pointer (`/name/en`), or keys separated by dots (`name.en`).' }),
      value: Type.Optional(Type.Unknown()),
    },
    { $id: 'AgentPatchOperation', additionalProperties: false },
  ),
  {
    maxItems: 1_000,
    description: 'Operations `ADD`, `REMOVE` or `REPLACE`. The service applies all of them, or none.',
    examples: [[{ op: 'REPLACE', path: '/enabled', value: true }]],
  },
);
export type AgentPatch = Static<typeof AgentPatch>;
