import type { HttpServer } from '../http/http-server-type.ts';
import { repeat } from '../repeat.ts';
import type { Jobs } from './service.ts';

// Milliseconds.
const every = 30_000;

/** Works on jobs for as long as the server listens. */
export async function jobUpkeep(app: HttpServer, { jobs }: { jobs: Jobs }): Promise<void> {
  const stop = new AbortController();
  let work: Promise<void> = Promise.resolve();

  app.addHook('onReady', () => jobs.prepare());
  app.addHook('onListen', async () => {
    await jobs.work();
    work = repeat({
      every,
      signal: stop.signal,
      turn: () => jobs.upkeep(),
      onError: (error) => app.log.warn({ err: error }, 'looking for forgotten jobs failed; it is tried again'),
    });
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
    await jobs.close();
  });
}
