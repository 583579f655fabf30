import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpServer } from './http-server-type.ts';

/** Milliseconds in which a client takes at least a byte of its answer (contract 11). */
export const maxClientSilence = 60_000;

/** Looks at a silent client within that time: Node knows only whether something has moved since its last look. */
export const looks = 6;

/**
 * Cuts off clients that take no byte of an answer for so many milliseconds, and connections without a request that
 * have been kept long enough. A client that waits for its answer, or sends its body, is limited elsewhere.
 */
export function cutOffSlowClients(app: HttpServer, silence = maxClientSilence): void {
  const lookEvery = silence / looks;
  const underWay = new WeakMap<Socket, number>();
  /** When a client was seen silent for the last time, since when it has been, and the bytes in both directions until then. */
  const silent = new WeakMap<Socket, { seen: number; since: number; bytes: number }>();

  function count(socket: Socket, change: 1 | -1): void {
    underWay.set(socket, (underWay.get(socket) ?? 0) + change);
  }

  app.server.on('request', ({ socket }, response: ServerResponse) => {
    count(socket, 1);
    response.once('close', () => count(socket, -1));
  });
  // Node tells when nothing has moved on a socket, be it a part of what is written. Because somebody listens, it
  // leaves to us what follows from it, for connections that it keeps for a next request as well.
  app.server.setTimeout(lookEvery, (socket: Socket) => {
    const waitsForUs = (underWay.get(socket) ?? 0) > 0 && socket.writableLength === 0;
    if (waitsForUs) return;
    const now = performance.now();
    const before = silent.get(socket);
    const bytes = socket.bytesRead + socket.bytesWritten;
    // After a look at which something had moved, Node looks again and says nothing.
    const goesOn = before?.bytes === bytes && now - before.seen < 1.5 * lookEvery;
    const since = goesOn ? before.since : now - (socket.timeout ?? 0);
    if (now - since >= silence) {
      socket.destroy();
      return;
    }
    silent.set(socket, { seen: now, since, bytes });
    socket.setTimeout(lookEvery);
  });
}
