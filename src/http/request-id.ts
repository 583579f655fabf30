import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** An id that is safe in a log line and in a header. Any other id is replaced. */
const safeId = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's `x-request-id` where it is safe, otherwise a UUID. */
export function requestIdOf(message: IncomingMessage): string {
  const given = message.headers['x-request-id'];
  return typeof given === 'string' && safeId.test(given) ? given : randomUUID();
}
