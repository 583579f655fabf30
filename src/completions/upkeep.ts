import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpServer } from '../http/http-server-type.ts';
import { whileListening } from '../http/while-listening.ts';
import type { Completions } from './service.ts';

// Milliseconds. A tenant that asks does its own; this is for those that do not.
const every = 5_000;
// Shorter than what `annals serve` gives to what is in flight; what is cut is charged when its lease has ended.
const maxCloseWait = 25_000;

/** What completions want done beside their requests, and what is under way when the server closes. */
export async function completionUpkeep(
  app: HttpServer,
  { quota, idempotency }: Pick<Completions, 'quota' | 'idempotency'>,
): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'the upkeep of completions',
        every,
        async work() {
          await quota.upkeep();
          await idempotency.upkeep();
        },
      },
    ],
    async end() {
      // Calls whose client has gone are not among the requests that a closing server waits for.
      await Promise.race([idempotency.close(), sleep(maxCloseWait, undefined, { ref: false })]);
      await quota.close();
    },
  });
}
