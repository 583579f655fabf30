import { type Static, Type } from 'typebox';
import { unsupportedMember } from '../../http/body-members.ts';
import { maxServerAddress, serverAddressPattern } from '../../outbound/addresses.ts';
import { tenantHeaders } from '../../providers/tenant-headers.ts';
import { maxToolName } from './tool-definition.ts';

/** Per agent. */
export const maxServers = 4;
export const maxTools = 32;

/** Characters. Names contain no `__` and do not end with `_`, so that a tool's name identifies its server. */
export const maxServerName = 32;

const sha256 = Type.String({
  pattern: '^[0-9a-f]{64}$',
  'x-must': 'be a SHA-256 in 64 hexadecimal digits',
  description:
    'The SHA-256 of the canonical JSON (RFC 8785) of `{name, description, inputSchema}`, as `mcp-tools` tells it.',
});

const ApprovedTool = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: maxToolName }),
    sha256,
    state: Type.Optional(
      Type.Enum(['changed', 'missing'], {
        type: 'string',
        description:
          'The server described the tool otherwise when it was last read, or did not offer it. The model does not get it then. Read-only: ' +
          'ignored in a request.',
        readOnly: true,
      }),
    ),
  },
  { $id: 'ApprovedTool', additionalProperties: false },
);
export type ApprovedTool = Static<typeof ApprovedTool>;

const ownShape = 'be left out: write name, url and tools of the server';

const serverMembers = {
  name: Type.String({
    maxLength: maxServerName,
    pattern: '^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$',
    'x-must': 'be letters A-Z and a-z, digits, - and single _ between them',
    description: 'Models know a tool as `server__tool`, 64 characters together.',
  }),
  url: Type.String({
    maxLength: maxServerAddress,
    pattern: serverAddressPattern,
    'x-must': 'be a URL that begins with http:// or https://, without user, query and fragment',
    description:
      'The address of Streamable HTTP. The service refuses private addresses unless the operator allows them.',
    examples: ['https://tools.example.com/mcp'],
  }),
};

const headers = tenantHeaders('ToolServerHeaders', '`mcp-…`');
const tools = Type.Array(ApprovedTool, {
  maxItems: maxTools,
  description:
    'The tools that the agent may use, each as it was approved. One that has changed since is not offered to the model.',
});

const McpServerInput = Type.Object(
  {
    ...serverMembers,
    headers: Type.Optional(headers),
    tools: Type.Optional(tools),
    type: unsupportedMember(ownShape),
    domain: unsupportedMember(ownShape),
    mcpServer: unsupportedMember(ownShape),
  },
  { $id: 'McpServerInput', additionalProperties: false },
);
export type McpServerInput = Static<typeof McpServerInput>;

/** In a request. Null means none, because clients of the API family send empty members so. */
export const McpServersInput = Type.Union([
  Type.Array(McpServerInput, {
    maxItems: maxServers,
    description: 'Servers whose tools the agent may use, by the Model Context Protocol.',
    examples: [[{ name: 'docs', url: 'https://tools.example.com/mcp', tools: [] }]],
  }),
  Type.Null(),
]);

const McpServer = Type.Object({ ...serverMembers, headers, tools }, { $id: 'McpServer' });
export type McpServer = Static<typeof McpServer>;

/** In a response, with masks in place of header values. */
export const McpServers = Type.Array(McpServer, { description: 'Servers whose tools the agent may use.' });

export const McpToolsRequest = Type.Object(
  { server: Type.String({ description: 'The name of a server of the agent.', examples: ['docs'] }) },
  { $id: 'McpToolsRequest', additionalProperties: false },
);

const ToolDefinition = Type.Object(
  {
    name: Type.String(),
    description: Type.Optional(Type.String()),
    inputSchema: Type.Record(Type.String(), Type.Unknown(), { description: 'JSON Schema.' }),
  },
  { $id: 'ToolDefinition' },
);

const McpTool = Type.Object(
  {
    name: Type.String(),
    state: Type.Enum(['new', 'approved', 'changed', 'missing'], {
      type: 'string',
      description: 'Compared with what the agent has approved.',
    }),
    sha256: Type.Optional(
      Type.String({
        description:
          'To be approved with. Missing where the server does not offer the tool, or its definition is malformed.',
      }),
    ),
    offered: Type.Optional(ToolDefinition),
    approved: Type.Optional(
      Type.Object(
        { sha256: Type.String(), definition: Type.Optional(ToolDefinition) },
        {
          $id: 'ApprovedDefinition',
          description: 'What was approved. The definition is missing where it was never read.',
        },
      ),
    ),
    fault: Type.Optional(Type.String({ description: 'Why no agent can have the tool.' })),
    bytes: Type.Optional(Type.Integer({ description: 'What the tool takes of each request to the model.' })),
  },
  { $id: 'McpTool' },
);
export type McpTool = Static<typeof McpTool>;

export const McpTools = Type.Object(
  {
    server: Type.String(),
    tools: Type.Array(McpTool),
    room: Type.Integer({
      description:
        "Bytes that tools of this server may take together. The agent's instructions, its other tools, an answer and the result " +
        'of a tool need the rest of `llmConfig.contextTokens`.',
    }),
    warning: Type.Optional(
      Type.String({
        description: 'Why the model cannot use the approved tools, or all of them where none is approved.',
      }),
    ),
  },
  {
    $id: 'McpTools',
    examples: [
      {
        server: 'docs',
        room: 246_410,
        tools: [
          {
            name: 'search',
            state: 'new',
            sha256: '4f0bbf1c0d9b2a6f6c0c0f6ac1ce0a5a8e6f3f4f6e8c7bc0a9d3c2b1a0f9e8d7',
            offered: { name: 'search', description: 'Searches the documents.', inputSchema: { type: 'object' } },
            bytes: 88,
          },
        ],
      },
    ],
  },
);
export type McpTools = Static<typeof McpTools>;
