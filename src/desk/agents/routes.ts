import type { HttpServer } from '../../http/http-server-type.ts';
import { agentRoutes } from './agent-routes.ts';
import { chatRoutes } from './chat-routes.ts';
import { logRoutes } from './log-routes.ts';
import type { AgentRoutesOptions } from './route-options.ts';

/** All routes under `/ai-service/{tenant}/agentic` except the models (contract 8). */
export async function agenticRoutes(app: HttpServer, options: AgentRoutesOptions): Promise<void> {
  await app.register(agentRoutes, options);
  await app.register(chatRoutes, options);
  await app.register(logRoutes, options);
}
