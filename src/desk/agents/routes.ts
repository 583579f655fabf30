import type { Static } from 'typebox';
import { whenClientGone } from '../../http/client-gone.ts';
import { authorOf } from '../../http/credentials.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { json, noContent } from '../../http/openapi/answers.ts';
import { Created, documentRoutes } from '../../http/openapi/document-routes.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import { McpTools, McpToolsRequest } from '../mcp/schemas.ts';
import { agentRows } from './agent-store.ts';
import { Agent, AgentItem } from './answer-schemas.ts';
import { chatRoutes } from './chat-routes.ts';
import { logRoutes } from './log-routes.ts';
import { AgentBody, AgentPatch, AgentPath, AgentsPath } from './schemas.ts';
import type { AgentRoutesOptions, Agents } from './service.ts';

const tags = ['Agents'];
const reading: readonly Scope[] = ['ai.agent_read', 'ai.agent_manage'];
const writing: readonly Scope[] = ['ai.agent_manage'];
const neverCompressed = 'addresses of tool servers can be secrets';

/** Agents (contract 8). */
async function agentRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  const { agents, paginator } = options;
  const { own, readTools, documents } = agents;

  listRoutes(app, paginator, {
    path: '/ai-service/:tenant/agentic/agents',
    params: AgentsPath,
    tags,
    name: 'Agents',
    many: 'agents',
    item: AgentItem,
    scopes: reading,
    neverCompressed,
    page: ({ credentials: { tenant } }, query, page) => documents.page(agentRows(tenant), query, page),
  });

  documentRoutes(app, {
    path: '/ai-service/:tenant/agentic/agents/:id',
    params: AgentPath,
    tags,
    name: 'Agent',
    singular: 'agent',
    read: {
      scopes: reading,
      schema: Agent,
      neverCompressed,
      find: ({ params: { tenant, id } }) => own.find(tenant, id),
    },
    put: {
      scopes: writing,
      errors: ['conflict_resource'],
      body: AgentBody,
      located: Created,
      put: ({ params, request, author }) =>
        own.put(author, params.id, { body: request.body as Static<typeof AgentBody>, text: request.bodyText }),
    },
    remove: { scopes: writing, remove: ({ params, author }) => own.remove(author, params.id) },
  });

  app.patch(
    '/ai-service/:tenant/agentic/agents/:id',
    {
      config: { scopes: writing, errors: ['resource_not_found', 'conflict_resource'] },
      schema: {
        operationId: 'patchAgent',
        tags,
        summary: 'Changing an agent',
        params: AgentPath,
        body: AgentPatch,
        response: { 204: noContent('The agent is changed.') },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      await own.patch(authorOf(request), id, request.bodyText);
      return await reply.code(204).send();
    },
  );

  app.post(
    '/ai-service/:tenant/agentic/agents/:id/mcp-tools',
    {
      config: { scopes: writing, work: 'calls', errors: ['resource_not_found', 'provider_error', 'provider_timeout'] },
      schema: {
        operationId: 'readMcpTools',
        tags,
        summary: 'Reading the tools that a server of an agent offers',
        params: AgentPath,
        body: McpToolsRequest,
        response: { 200: json(McpTools, { description: 'The tools, compared with those that are approved.' }) },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      return await readTools(tenant, { agentId: id, server: request.body.server, signal: whenClientGone(reply) });
    },
  );
}

/** All routes under `/ai-service/{tenant}/agentic` except the models (contract 8). */
export async function agenticRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  await app.register(agentRoutes, options);
  await app.register(chatRoutes, options);
  await app.register(logRoutes, options);
}

// Milliseconds.
const every = 5_000;

/** Runs the upkeep of agents in the background, and waits for running chats on shutdown. */
export async function agentUpkeep(
  app: HttpServer,
  { agents: { chats }, findTenants }: { agents: Agents; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of agents', every, work: () => chats.upkeep(findTenants) }],
    // The server does not wait for chats of disconnected clients.
    end: () => chats.close(),
  });
}
