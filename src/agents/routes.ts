import type { HttpServer } from '../http/http-server.ts';
import type { Paginator } from '../pagination/paginator.ts';
import { agentRoutes } from './agent-routes.ts';
import { chatRoutes } from './chat-routes.ts';
import { logRoutes } from './log-routes.ts';
import type { Agents } from './service.ts';

export interface AgentRoutesOptions {
  agents: Agents;
  paginator: Paginator;
}

/** Everything under `/ai-service/{tenant}/agentic` but the models (contract 8). */
export async function agenticRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  await app.register(agentRoutes, options);
  await app.register(chatRoutes, options);
  await app.register(logRoutes, options);
}
