import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { Agents } from './service.ts';

// Milliseconds.
const every = 5_000;

/** Runs the upkeep of agents in the background, and waits for running chats when the server closes. */
export async function agentUpkeep(
  app: HttpServer,
  { agents: { chats }, findTenants }: { agents: Agents; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of agents', every, work: () => chats.upkeep(findTenants) }],
    // A closing server does not wait for chats whose client has disconnected, so this does.
    end: () => chats.close(),
  });
}
