import { setTimeout as sleep } from 'node:timers/promises';
import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { Completions } from './service.ts';

// Milliseconds. The requests of an active tenant do this work themselves. The interval serves the other tenants.
const every = 5_000;
// Shorter than the time that `annals serve` gives running requests. A call that is cut is charged when its lease has
// expired.
const maxCloseWait = 25_000;

/** Runs the upkeep of completions in the background, and waits for running calls when the server closes. */
export async function completionUpkeep(
  app: HttpServer,
  { quota, idempotency, findTenants }: Pick<Completions, 'quota' | 'idempotency'> & { findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [
      {
        what: 'the upkeep of completions',
        every,
        async work() {
          await quota.upkeep(findTenants);
          await idempotency.upkeep(findTenants);
        },
      },
    ],
    async end() {
      // A closing server does not wait for calls whose client has disconnected, so this does.
      await Promise.race([idempotency.close(), sleep(maxCloseWait, undefined, { ref: false })]);
      await quota.close();
    },
  });
}
