import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { MailQueue } from './service.ts';

// Milliseconds.
const deliverEvery = 1_000;
const upkeepEvery = 60 * 60_000;

/** Sends mails while the server listens. */
export async function mailUpkeep(app: HttpServer, { mail }: { mail: MailQueue }): Promise<void> {
  whileListening(app, {
    upkeep: [
      { what: 'sending mails', every: deliverEvery, work: (signal) => mail.deliver(signal) },
      { what: 'the upkeep of mails', every: upkeepEvery, work: () => mail.upkeep() },
    ],
    end: () => mail.close(),
  });
}
