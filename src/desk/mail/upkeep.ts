import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { MailQueue } from './service.ts';

// Milliseconds.
const deliverEvery = 1_000;
const upkeepEvery = 60 * 60_000;

/** Sends mails while the server listens. */
export async function mailUpkeep(
  app: HttpServer,
  { mail, findTenants }: { mail: MailQueue; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [
      { what: 'sending mails', every: deliverEvery, work: (signal) => mail.deliver(signal, findTenants) },
      { what: 'the upkeep of mails', every: upkeepEvery, work: () => mail.upkeep() },
    ],
    end: () => mail.close(),
  });
}
