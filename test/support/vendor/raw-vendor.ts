import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';

/** An answer as bytes, each piece in a write of its own. */
export interface RawAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly pieces: readonly Uint8Array[];
  /** Whether the connection ends before the answer does. */
  readonly isCut?: boolean;
}

/** A server on loopback that keeps the bodies it gets, and gives the answer that was set last. */
export interface RawVendor {
  readonly baseUrl: string;
  readonly bodies: string[];
  answer(next: RawAnswer): void;
  close(): Promise<void>;
}

export async function startRawVendor(): Promise<RawVendor> {
  let answer: RawAnswer = { headers: {}, pieces: [] };
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    bodies.push(await text(request));
    const { headers, pieces, isCut = false } = answer;
    response.writeHead(200, headers);
    response.flushHeaders();
    for (const piece of pieces) {
      response.write(piece);
      await turn();
    }
    if (isCut) response.socket?.end();
    else response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,

    answer(next) {
      answer = next;
    },

    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
