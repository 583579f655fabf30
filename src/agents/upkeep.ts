import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { Agents } from './service.ts';

// Milliseconds.
const every = 5_000;

/** What agents want done beside their requests, and what is under way when the server closes. */
export async function agentUpkeep(app: HttpServer, { agents: { chats } }: { agents: Agents }): Promise<void> {
  whileListening(app, {
    upkeep: [{ what: 'the upkeep of agents', every, work: () => chats.upkeep() }],
    // Chats whose client has gone are not among the requests that a closing server waits for.
    end: () => chats.close(),
  });
}
