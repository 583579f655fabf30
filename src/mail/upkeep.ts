import type { HttpServer } from '../http/http-server-type.ts';
import { repeat } from '../repeat.ts';
import type { MailQueue } from './service.ts';

// Milliseconds.
const deliverEvery = 1_000;
const upkeepEvery = 60 * 60_000;

/** Sends mails for as long as the server listens. */
export async function mailUpkeep(app: HttpServer, { mail }: { mail: MailQueue }): Promise<void> {
  const stop = new AbortController();
  let work: Promise<unknown> = Promise.resolve();

  const onError = (error: unknown) => app.log.warn({ err: error }, 'the mail queue met an error; it goes on');

  app.addHook('onListen', async () => {
    work = Promise.all([
      repeat({ every: deliverEvery, signal: stop.signal, turn: () => mail.deliver(stop.signal), onError }),
      repeat({ every: upkeepEvery, signal: stop.signal, turn: () => mail.upkeep(), onError }),
    ]);
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
    mail.close();
  });
}
