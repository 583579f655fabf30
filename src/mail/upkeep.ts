import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpServer } from '../http/http-server.ts';
import type { MailQueue } from './service.ts';

// Milliseconds.
const deliverEvery = 1_000;
const upkeepEvery = 60 * 60_000;

/** Sends mails for as long as the server listens. */
export async function mailUpkeep(app: HttpServer, { mail }: { mail: MailQueue }): Promise<void> {
  const stop = new AbortController();
  let work: Promise<unknown> = Promise.resolve();

  async function repeat(every: number, turn: () => Promise<void>): Promise<void> {
    while (!stop.signal.aborted) {
      try {
        await turn();
      } catch (error) {
        app.log.warn({ err: error }, 'the mail queue met an error; it goes on');
      }
      await sleep(every, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  }

  app.addHook('onListen', async () => {
    work = Promise.all([
      repeat(deliverEvery, () => mail.deliver(stop.signal)),
      repeat(upkeepEvery, () => mail.upkeep()),
    ]);
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await work;
    mail.close();
  });
}
