import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import { agentRoutes } from './agent-routes.ts';
import { chatRoutes } from './chat-routes.ts';
import { logRoutes } from './log-routes.ts';
import type { AgentRoutesOptions, Agents } from './service.ts';

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
