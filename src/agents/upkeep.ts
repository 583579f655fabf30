import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpServer } from '../http/http-server.ts';
import type { Agents } from './service.ts';

// Milliseconds.
const every = 5_000;

/** What agents want done beside their requests, and what is under way when the server closes. */
export async function agentUpkeep(app: HttpServer, { agents: { chats } }: { agents: Agents }): Promise<void> {
  const stop = new AbortController();
  let work: Promise<void> = Promise.resolve();

  async function repeat(): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await chats.upkeep();
      } catch (error) {
        app.log.warn({ err: error }, 'the upkeep of agents failed; it is tried again');
      }
      await sleep(every, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  }

  app.addHook('onListen', async () => {
    work = repeat();
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
    // Chats whose client has gone are not among the requests that a closing server waits for.
    await chats.close();
  });
}
