import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** What may safely stand in a log line and a response header; anything else is replaced, not repaired. */
const sane = /^[A-Za-z0-9._:-]{1,128}$/;

/** The caller's `x-request-id` where it is sane, else a UUID. */
export function requestIdOf(message: IncomingMessage): string {
  const given = message.headers['x-request-id'];
  return typeof given === 'string' && sane.test(given) ? given : randomUUID();
}
