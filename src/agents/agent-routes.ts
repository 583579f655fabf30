import { sql } from 'kysely';
import type { HttpServer } from '../http/http-server.ts';
import type { Scope } from '../http/scopes.ts';
import { PagingHeaders } from '../pagination/parameters.ts';
import type { AgentRoutesOptions } from './routes.ts';
import { AgentBody, AgentPatch, AgentPath, AgentsPath, ListQuery, SearchBody, SearchQuery } from './schemas.ts';

const tags = ['Agents'];
const reading: readonly Scope[] = ['ai.agent_read', 'ai.agent_manage'];
const writing: readonly Scope[] = ['ai.agent_manage'];
const json = 'application/json; charset=utf-8';

/** Agents (contract 8). */
export async function agentRoutes(app: HttpServer, { agents, paginator }: AgentRoutesOptions): Promise<void> {
  const { documents, writes } = agents;
  const agentsOf = (tenant: string) => ({ from: sql`agent`, where: sql<boolean>`tenant = ${tenant}` });

  app.get(
    '/ai-service/:tenant/agentic/agents',
    {
      config: { scopes: reading },
      schema: { tags, summary: 'Listing agents', params: AgentsPath, querystring: ListQuery, headers: PagingHeaders },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const { q = '', fields } = request.query;
      const wanted = paginator.read(request, { tenant, operation: 'list agents', filter: q });
      const { items, headers } = await documents.page(agentsOf(tenant), { q, fields }, wanted);
      return await reply.headers(headers).type(json).send(`[${items.join()}]`);
    },
  );

  app.post(
    '/ai-service/:tenant/agentic/agents/search',
    {
      config: { scopes: reading },
      schema: {
        tags,
        summary: 'Searching agents',
        params: AgentsPath,
        querystring: SearchQuery,
        headers: PagingHeaders,
        body: SearchBody,
      },
    },
    async (request, reply) => {
      const { tenant } = request.params;
      const { q = '' } = request.body;
      const { fields } = request.query;
      const wanted = paginator.read(request, { tenant, operation: 'search agents', filter: q });
      const { items, headers } = await documents.page(agentsOf(tenant), { q, fields }, wanted);
      return await reply.headers(headers).type(json).send(`[${items.join()}]`);
    },
  );

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
