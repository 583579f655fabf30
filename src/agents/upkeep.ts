import type { HttpServer } from '../http/http-server-type.ts';
import { repeat } from '../repeat.ts';
import type { Agents } from './service.ts';

// Milliseconds.
const every = 5_000;

/** What agents want done beside their requests, and what is under way when the server closes. */
export async function agentUpkeep(app: HttpServer, { agents: { chats } }: { agents: Agents }): Promise<void> {
  const stop = new AbortController();
  let work: Promise<void> = Promise.resolve();

  app.addHook('onListen', async () => {
    work = repeat({
      every,
      signal: stop.signal,
      turn: () => chats.upkeep(),
      onError: (error) => app.log.warn({ err: error }, 'the upkeep of agents failed; it is tried again'),
    });
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
    // Chats whose client has gone are not among the requests that a closing server waits for.
    await chats.close();
  });
}
