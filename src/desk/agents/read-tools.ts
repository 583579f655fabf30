import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import { openHeaders } from '../mcp/headers.ts';
import type { McpServer, McpTool, McpTools } from '../mcp/schemas.ts';
import { comparedServer } from '../mcp/servers.ts';
import { keepDefinitions, readDefinitions } from '../mcp/store.ts';
import { type OfferedTool, textOfTool } from '../mcp/tool-definition.ts';
import { type OpenToolServer, ToolFailure } from '../mcp/tool-server.ts';
import { agentNoun, agentTable } from './agent-store.ts';
import { readAgentHead } from './agent-texts.ts';
import { markTools } from './tool-states.ts';

/**
 * Reads what a server of an agent offers, and compares it with what is approved. Throws resource_not_found, validation_violation,
 * provider_error and provider_timeout.
 */
export type ReadTools = (
  tenant: string,
  asked: { agentId: string; server: string; signal: AbortSignal },
) => Promise<McpTools>;

export interface ReadToolsOptions {
  db: Database;
  sealer: Sealer;
  now: () => number;
  openToolServer: OpenToolServer;
}

export function createReadTools({ db, sealer, now, openToolServer }: ReadToolsOptions): ReadTools {
  return async (tenant, { agentId: id, server: name, signal }) => {
    const agent = await agentTable.find(db, tenant, id);
    if (agent === undefined) throw notFound(agentNoun);
    const { mcpServers = [] } = await readAgentHead(agent.document);
    const server = mcpServers.find((one) => one.name === name);
    if (server === undefined)
      throw invalidBody({ field: 'server', message: 'must be the name of a server of the agent' });
    const headers = openHeaders(sealer, tenant, id, agent.sealedHeaders);
    if (headers === undefined && Object.keys(server.headers).length > 0) {
      const message = 'has headers that cannot be read any more, and must be given anew';
      throw invalidBody({ field: 'server', message });
    }
    const offered = await offeredBy(openToolServer, { ...server, headers: headers?.[name] ?? {} }, signal);
    const compared = comparedServer(server, offered);
    const known = await readDefinitions(db, tenant, { agentId: id, server: name });
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
              offered.filter(({ fault }) => fault === undefined).map((tool) => [tool.sha256, textOfTool(tool)]),
            ),
            approved: server.tools.map(({ sha256 }) => sha256),
            servers: mcpServers.map((one) => one.name),
          },
        );
        await markTools(transaction, tenant, { id, compared: [compared], at: now() });
      },
      { retries: 3 },
    );
    return { server: name, tools: toldTools(compared, offered, known) };
  };
}

async function offeredBy(
  open: OpenToolServer,
  address: Parameters<OpenToolServer>[0],
  signal: AbortSignal,
): Promise<readonly OfferedTool[]> {
  try {
    const connection = await open(address, signal);
    await connection.close();
    return connection.tools;
  } catch (error) {
    if (!(error instanceof ToolFailure)) throw error;
    const type = error.fault === 'timeout' ? 'provider_timeout' : 'provider_error';
    // Never the server's own words.
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

function toldTools(server: McpServer, offered: readonly OfferedTool[], known: ReadonlyMap<string, string>): McpTool[] {
  const approvedOf = (name: string) => {
    const approved = server.tools.find((tool) => tool.name === name);
    if (approved?.state === undefined) return {};
    const definition = known.get(approved.sha256);
    const { sha256 } = approved;
    return { approved: { sha256, ...(definition !== undefined && { definition: JSON.parse(definition) }) } };
  };
  const stateOf = (name: string): McpTool['state'] => {
    const approved = server.tools.find((tool) => tool.name === name);
    return approved === undefined ? 'new' : (approved.state ?? 'approved');
  };
  return [
    ...offered.map(({ name, description, inputSchema, sha256, fault }): McpTool => {
      const definition = { name, ...(description !== undefined && { description }), inputSchema };
      const offer = { name, state: stateOf(name), sha256, offered: definition, ...approvedOf(name) };
      return { ...offer, ...(fault !== undefined && { fault }) };
    }),
    ...server.tools
      .filter(({ state }) => state === 'missing')
      .map(({ name }): McpTool => ({ name, state: 'missing', ...approvedOf(name) })),
  ];
}
