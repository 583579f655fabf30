import type { preParsingHookHandler } from 'fastify';

/** Begins to read the tenant's keys while the body is read and checked, so that the call waits for the database less. */
export function keysAhead(read: (tenant: string) => Promise<unknown>): preParsingHookHandler {
  return ({ work }, _reply, _payload, done) => {
    // The call asks again, and gets what was read here, or why it was not.
    if (work !== null) read(work.tenant).catch(() => {});
    done();
  };
}
