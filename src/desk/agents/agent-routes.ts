import type { HttpServer } from '../../http/http-server-type.ts';
import { json, jsonText, jsonType, noContent } from '../../http/openapi/answers.ts';
import { listRoutes } from '../../http/openapi/list-routes.ts';
import type { Scope } from '../../http/scopes.ts';
import { agentRows } from './agent-store.ts';
import { Agent, AgentCreated, AgentItem } from './answer-schemas.ts';
import { AgentBody, AgentPatch, AgentPath, AgentsPath } from './schemas.ts';
import type { AgentRoutesOptions } from './service.ts';

const tags = ['Agents'];
const reading: readonly Scope[] = ['ai.agent_read', 'ai.agent_manage'];
const writing: readonly Scope[] = ['ai.agent_manage'];

/** Agents (contract 8). */
export async function agentRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  const { agents, paginator } = options;
  const { writes, documents } = agents;

  listRoutes(app, paginator, {
    path: '/ai-service/:tenant/agentic/agents',
    params: AgentsPath,
    tags,
    name: 'Agents',
    many: 'agents',
    item: AgentItem,
    scopes: reading,
    page: ({ credentials: { tenant } }, asked, wanted) => documents.page(agentRows(tenant), asked, wanted),
  });

  app.get(
    '/ai-service/:tenant/agentic/agents/:id',
    {
      config: { scopes: reading, errors: ['resource_not_found'] },
      schema: {
        operationId: 'getAgent',
        tags,
        summary: 'Retrieving an agent',
        params: AgentPath,
        response: { 200: jsonText(Agent, { description: 'The agent.' }) },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      return await reply.type(jsonType).send(await agents.find(tenant, id));
    },
  );

  app.put(
    '/ai-service/:tenant/agentic/agents/:id',
    {
      config: { scopes: writing, errors: ['conflict_resource'] },
      schema: {
        operationId: 'putAgent',
        tags,
        summary: 'Creating or replacing an agent',
        params: AgentPath,
        body: AgentBody,
        response: {
          201: json(AgentCreated, { description: 'The agent was created.', headers: ['Location'] }),
          204: noContent('The agent is replaced.'),
        },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      const author = { tenant, actor: request.credentials.clientName };
      if ((await writes.put(author, id, { body: request.body, text: request.bodyText })) === 'replaced')
        return await reply.code(204).send();
      const location = `/ai-service/${tenant}/agentic/agents/${encodeURIComponent(id)}`;
      return await reply.code(201).header('location', location).send({ id });
    },
  );

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
      const { tenant, id } = request.params;
      await writes.patch({ tenant, actor: request.credentials.clientName }, id, request.bodyText);
      return await reply.code(204).send();
    },
  );

  app.delete(
    '/ai-service/:tenant/agentic/agents/:id',
    {
      config: { scopes: writing, errors: ['resource_not_found'] },
      schema: {
        operationId: 'deleteAgent',
        tags,
        summary: 'Deleting an agent',
        params: AgentPath,
        response: { 204: noContent('The agent is deleted.') },
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      await writes.remove({ tenant, actor: request.credentials.clientName }, id);
      return await reply.code(204).send();
    },
  );
}
