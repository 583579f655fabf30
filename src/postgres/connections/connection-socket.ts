import { Socket } from 'node:net';
import type pg from 'pg';

/** The driver has this property, but its types do not show it. */
export function socketOf(client: pg.ClientBase): Socket {
  const connection: unknown = 'connection' in client ? client.connection : undefined;
  const stream = typeof connection === 'object' && connection !== null && 'stream' in connection && connection.stream;
  if (!(stream instanceof Socket)) throw new Error('the driver does not tell the socket of a connection');
  return stream;
}
