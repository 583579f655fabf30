import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { Tool } from '../../providers/port.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import { type RecordedDocument, recordDocumentChange } from '../../recording/record-document-change.ts';
import { toolInstructions } from '../mcp/chat-tools.ts';
import { openHeaders } from '../mcp/headers.ts';
import type { McpServer, McpTool, McpTools } from '../mcp/schemas.ts';
import { comparedServer } from '../mcp/servers.ts';
import { keepDefinitions, readDefinitions } from '../mcp/store.ts';
import { type ToolOffer, textOfTool, toolForModel } from '../mcp/tool-definition.ts';
import { type OpenToolServer, ToolFailure } from '../mcp/tool-server.ts';
import { offersHistoryTool } from './agent-document.ts';
import { agentNoun, agentTable } from './agent-store.ts';
import { markedAgent, readAgentHead } from './agent-texts.ts';
import { bytesForInput, bytesForTools, noRoomForTools, windowOf } from './chat-context.ts';
import { bytesOfTools, instructionsOf } from './conversation.ts';
import { historyTool } from './history-tool.ts';
import type { ModelCaller } from './model-caller.ts';

/**
 * Reads the tools that an agent's MCP server offers, and compares them with the approved ones. Throws
 * resource_not_found, validation_violation, provider_error and provider_timeout.
 */
export type ReadTools = (
  tenant: string,
  request: { agentId: string; server: string; signal: AbortSignal },
) => Promise<McpTools>;

export interface ReadToolsOptions {
  db: Database;
  sealer: Sealer;
  now: () => number;
  models: Pick<ModelCaller, 'outputCap'>;
  openToolServer: OpenToolServer;
}

export function createReadTools({ db, sealer, now, models, openToolServer }: ReadToolsOptions): ReadTools {
  return async (tenant, { agentId: id, server: name, signal }) => {
    const agent = await agentTable.find(db, tenant, id);
    if (agent === undefined) throw notFound(agentNoun);
    const head = await readAgentHead(agent.document);
    const { mcpServers = [] } = head;
    const server = mcpServers.find((candidate) => candidate.name === name);
    if (server === undefined)
      throw invalidBody({ field: 'server', message: 'must be the name of a server of the agent' });
    const headers = openHeaders(sealer, tenant, id, agent.sealedHeaders);
    if (headers === undefined && Object.keys(server.headers).length > 0) {
      const message = 'has headers that can no longer be decrypted and must be re-entered';
      throw invalidBody({ field: 'server', message });
    }
    const offer = await offeredBy(openToolServer, { ...server, headers: headers?.[name] ?? {} }, signal);
    const compared = comparedServer(server, offer);
    const definitions = await readDefinitions(db, tenant, id);
    await inTransaction(
      db,
      async (transaction) => {
        if ((await agentTable.find(transaction, tenant, id, { lock: true })) === undefined) throw notFound(agentNoun);
        await keepDefinitions(
          transaction,
          tenant,
          { agentId: id, server: name },
          {
            offered: new Map(
              offer.tools.filter(({ fault }) => fault === undefined).map((tool) => [tool.sha256, textOfTool(tool)]),
            ),
            approved: server.tools.map(({ sha256 }) => sha256),
            servers: mcpServers.map(({ name: serverName }) => serverName),
          },
        );
        await markTools(transaction, tenant, { id, compared: [compared], at: now() });
      },
      { retries: 3 },
    );
    const tools = toolsOfServer(compared, offer, definitions);
    return { server: name, tools, ...roomFor(tools, { server: name, head, definitions, models, at: now() }) };
  };
}

async function offeredBy(
  open: OpenToolServer,
  address: Parameters<OpenToolServer>[0],
  signal: AbortSignal,
): Promise<ToolOffer> {
  try {
    const connection = await open(address, signal);
    await connection.close();
    return connection.offer;
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    const type = error.fault === 'timeout' ? 'provider_timeout' : 'provider_error';
    // Never the server's own text.
    throw new AnnalsError(type, messages[error.fault], { cause: error });
  }
}

const messages: Readonly<Record<ToolFailure['fault'], string>> = {
  unreachable: 'The server of tools cannot be reached.',
  timeout: 'The server of tools did not answer in time.',
  too_large: 'The server of tools answers with more than Annals reads.',
  bad_answer: 'The server of tools gave no usable answer.',
  refused: 'The server of tools refuses the request. Check its address and its headers.',
  cancelled: 'The server of tools was not waited for.',
};

/** The bytes that the tools of a server may take, and a warning if they take more. */
function roomFor(
  tools: readonly McpTool[],
  { server, head, definitions, models, at }: RoomOptions,
): Pick<McpTools, 'room' | 'warning'> {
  const { llmConfig, userPrompt, mcpServers = [], nativeTools, allowHistoryWithTools } = head;
  const withHistory = allowHistoryWithTools === true && offersHistoryTool(nativeTools);
  const instructions = instructionsOf(userPrompt, withHistory, toolInstructions(true), at);
  const others = mcpServers
    .filter(({ name }) => name !== server)
    .flatMap((mcpServer) => approvedTools(mcpServer, definitions));
  const reserved = bytesOfTools([...(withHistory ? [historyTool] : []), ...others]);
  const room = bytesForTools(instructions, bytesForInput(llmConfig, models.outputCap(llmConfig))) - reserved;
  const approved = tools.filter(({ state }) => state === 'approved');
  const counted = approved.length > 0 ? approved : tools;
  const bytes = counted.reduce((sum, tool) => sum + (tool.bytes ?? 0), 0);
  if (bytes <= Math.max(0, room)) return { room };
  const which = approved.length > 0 ? 'The approved tools' : 'All tools of this server';
  return { room, warning: noRoomForTools(which, bytes, { room, window: windowOf(llmConfig) }) };
}

interface RoomOptions {
  readonly server: string;
  readonly head: Awaited<ReturnType<typeof readAgentHead>>;
  readonly definitions: ReadonlyMap<string, string>;
  readonly models: Pick<ModelCaller, 'outputCap'>;
  readonly at: number;
}

/** Approved tools as the model sees them, where their definitions are stored. */
function approvedTools({ name: server, tools }: McpServer, definitions: ReadonlyMap<string, string>): Tool[] {
  return tools.flatMap(({ sha256, state }) => {
    const definition = state === undefined ? definitions.get(sha256) : undefined;
    return definition === undefined ? [] : [toolForModel(server, JSON.parse(definition))];
  });
}

function toolsOfServer(
  server: McpServer,
  { tools, unreadable }: ToolOffer,
  definitions: ReadonlyMap<string, string>,
): McpTool[] {
  const approvedOf = (name: string) => {
    const approved = server.tools.find((tool) => tool.name === name);
    if (approved?.state === undefined) return {};
    const definition = definitions.get(approved.sha256);
    const { sha256 } = approved;
    return { approved: { sha256, ...(definition !== undefined && { definition: JSON.parse(definition) }) } };
  };
  const stateOf = (name: string): McpTool['state'] => {
    const approved = server.tools.find((tool) => tool.name === name);
    return approved === undefined ? 'new' : (approved.state ?? 'approved');
  };
  return [
    ...tools.map(({ name, description, inputSchema, sha256, fault }): McpTool => {
      const definition = { name, ...(description !== undefined && { description }), inputSchema };
      const offer = { name, state: stateOf(name), sha256, offered: definition, ...approvedOf(name) };
      if (fault !== undefined) return { ...offer, fault };
      return { ...offer, bytes: bytesOfTools([toolForModel(server.name, definition)]) };
    }),
    ...unreadable.map(({ name, fault }): McpTool => ({ name, state: stateOf(name), ...approvedOf(name), fault })),
    ...server.tools
      .filter(({ state }) => state === 'missing')
      .map(({ name }): McpTool => ({ name, state: 'missing', ...approvedOf(name) })),
  ];
}

/**
 * Marks an agent's approved tools that have changed, and records that. No-op if the agent is unchanged or gone. `at` is
 * in milliseconds since 1970.
 */
export async function markTools(
  transaction: DatabaseTransaction,
  tenant: string,
  { id, compared, at }: { id: string; compared: readonly McpServer[]; at: number },
): Promise<void> {
  const current = await agentTable.find(transaction, tenant, id, { lock: true });
  if (current === undefined) return;
  const version = current.version + 1;
  const marked = await markedAgent(current.document, { version, time: new Date(at).toISOString(), compared });
  if (marked === undefined) return;
  const { agent, document, fields } = marked;
  await agentTable.update(transaction, tenant, id, { ...current, version, document, fields });
  const change: RecordedDocument = {
    entity: agentNoun,
    entityId: id,
    at,
    name: agent.shownName,
    before: current.document,
    after: document,
  };
  await recordDocumentChange(transaction, { tenant, actor: 'system' }, change);
}
