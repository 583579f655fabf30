import { type Static, Type } from 'typebox';
import { shownMetadata } from '../../http/body-members.ts';
import { listItem } from '../../http/openapi/components.ts';
import { failureCauses } from '../../providers/failure-cause.ts';
import { toolOutcomes } from '../mcp/chat-tools.ts';
import { McpServers } from '../mcp/schemas.ts';
import { AgentBody } from './schemas.ts';

const metadata = Type.Object(shownMetadata, { $id: 'Metadata' });

// The service fills in what a client omits, except the description.
const { name, userPrompt, triggers, llmConfig, nativeTools } = Type.Required(AgentBody).properties;
const { description, allowHistoryWithTools } = AgentBody.properties;

/** An agent in responses, with everything that the service sets, and a mask in place of its key. */
export const Agent = Type.Object(
  {
    id: Type.String(),
    name,
    description,
    enabled: Type.Boolean({ description: 'A disabled agent answers 409.' }),
    userPrompt,
    triggers,
    llmConfig,
    nativeTools,
    mcpServers: Type.Optional(McpServers),
    allowHistoryWithTools,
    metadata,
    disabledReason: Type.Optional(Type.String({ description: 'The reason why the service disabled the agent.' })),
  },
  { $id: 'Agent' },
);
export type AgentDocument = Static<typeof Agent>;

export const AgentItem = listItem('AgentItem', Agent);

const severity = Type.Enum(['INFO', 'WARNING', 'ERROR'], { type: 'string' });

const LoggedToolCall = Type.Object(
  {
    server: Type.String(),
    tool: Type.Optional(Type.String({ description: 'Left out where the server was asked for its tools.' })),
    bytes: Type.Integer({ minimum: 0, description: "Bytes of the server's answer." }),
    durationMs: Type.Integer({ minimum: 0 }),
    outcome: Type.Enum(toolOutcomes, {
      type: 'string',
      description: '`failed`: the tool says so. `not_run`: a limit of the chat, or an input that is no JSON object.',
    }),
  },
  { $id: 'LoggedToolCall', description: 'A call of a server of tools.' },
);

const LogMessage = Type.Object(
  {
    timestamp: Type.String({ format: 'date-time' }),
    severity,
    message: Type.String(),
    agentId: Type.String(),
    requestId: Type.String(),
    guarded: Type.Optional(
      Type.Literal(true, {
        description: 'The message has data of the change history, so clients without a changelog scope do not see it.',
      }),
    ),
    toolCall: Type.Optional(LoggedToolCall),
  },
  { $id: 'LogMessage' },
);
export type LogMessage = Static<typeof LogMessage>;

const tokensOf = (kind: string) =>
  `With the shared token the ${kind} tokens that the quota was charged with; with an own key those that the provider ` +
  'reported. A message tells which figures the provider left unknown.';

const sums = {
  severity,
  messages: Type.Array(LogMessage),
  duration: Type.Integer({ minimum: 0, description: 'Whole seconds, rounded up.' }),
  durationMs: Type.Integer({ minimum: 0, description: 'Milliseconds.' }),
  promptTokens: Type.Integer({ minimum: 0, description: tokensOf('prompt') }),
  completionTokens: Type.Integer({ minimum: 0, description: tokensOf('completion') }),
  metadata,
};

export const RequestLog = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    requestId: Type.String(),
    sessionId: Type.String({ format: 'uuid' }),
    triggerAgentId: Type.String(),
    cause: Type.Optional(
      Type.Enum(failureCauses, {
        type: 'string',
        description: 'Why the request failed. Missing for a success, and after an error of the service itself.',
      }),
    ),
    ...sums,
  },
  { $id: 'RequestLog' },
);
export type RequestLogDocument = Static<typeof RequestLog>;

export const SessionLog = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'The id of the session.' }),
    sessionId: Type.String({ format: 'uuid' }),
    triggerAgentId: Type.String({ description: 'The agent of the first request.' }),
    agents: Type.Array(Type.String(), { description: 'All agents of the session.' }),
    ...sums,
  },
  { $id: 'SessionLog' },
);
export type SessionLogDocument = Static<typeof SessionLog>;

export const RequestLogItem = listItem('RequestLogItem', RequestLog);
export const SessionLogItem = listItem('SessionLogItem', SessionLog);
