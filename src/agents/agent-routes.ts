import type { HttpServer } from '../http/http-server-type.ts';
import type { Scope } from '../http/scopes.ts';
import { agentRows } from './agent-store.ts';
import { listRoutes } from './list-routes.ts';
import type { AgentRoutesOptions } from './route-options.ts';
import { AgentBody, AgentPatch, AgentPath } from './schemas.ts';

const tags = ['Agents'];
const reading: readonly Scope[] = ['ai.agent_read', 'ai.agent_manage'];
const writing: readonly Scope[] = ['ai.agent_manage'];
const json = 'application/json; charset=utf-8';

/** Agents (contract 8). */
export async function agentRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  const { agents } = options;
  const { writes } = agents;

  listRoutes(app, options, {
    path: '/agents',
    tags,
    many: 'agents',
    scopes: reading,
    rowsFor: ({ tenant }) => agentRows(tenant),
  });

  app.get(
    '/ai-service/:tenant/agentic/agents/:id',
    { config: { scopes: reading }, schema: { tags, summary: 'Retrieving an agent', params: AgentPath } },
    async (request, reply) => {
      const { tenant, id } = request.params;
      return await reply.type(json).send(await agents.find(tenant, id));
    },
  );

  app.put(
    '/ai-service/:tenant/agentic/agents/:id',
    {
      config: { scopes: writing },
      schema: {
        tags,
        summary: 'Making or replacing an agent',
        params: AgentPath,
        body: AgentBody,
      },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      const author = { tenant, actor: request.credentials.clientName };
      if ((await writes.put(author, id, request.body)) === 'replaced') return await reply.code(204).send();
      const location = `/ai-service/${tenant}/agentic/agents/${encodeURIComponent(id)}`;
      return await reply.code(201).header('location', location).send({ id });
    },
  );

  app.patch(
    '/ai-service/:tenant/agentic/agents/:id',
    {
      config: { scopes: writing },
      schema: { tags, summary: 'Changing an agent', params: AgentPath, body: AgentPatch },
    },
    async (request, reply) => {
      const { tenant, id } = request.params;
      await writes.patch({ tenant, actor: request.credentials.clientName }, id, request.body);
      return await reply.code(204).send();
    },
  );

  app.delete(
    '/ai-service/:tenant/agentic/agents/:id',
    { config: { scopes: writing }, schema: { tags, summary: 'Deleting an agent', params: AgentPath } },
    async (request, reply) => {
      const { tenant, id } = request.params;
      await writes.remove({ tenant, actor: request.credentials.clientName }, id);
      return await reply.code(204).send();
    },
  );
}
