import type { preParsingHookHandler } from 'fastify';
import { enterWork } from '../core/concurrency/work.ts';

/** Begins to read the tenant's keys while the body is read and checked, so that the call waits for the database less. */
export function keysAhead(read: (tenant: string) => Promise<unknown>): preParsingHookHandler {
  return ({ work }, _reply, _payload, done) => {
    // The call asks again, and gets what was read here, or why it was not.
    if (work !== null) enterWork(work, () => read(work.tenant)).catch(() => {});
    done();
  };
}
