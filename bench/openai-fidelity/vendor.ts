import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Reply } from './replies.ts';

/** A request as the vendor gets it. */
export interface Seen {
  readonly path: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A server on loopback that answers requests one after another by a script. */
export interface ScriptedVendor {
  readonly baseUrl: string;
  /** Answers with these from now on, the last one again and again. Returns the requests that come. */
  script(replies: readonly Reply[]): Seen[];
  close(): void;
}

export async function startScriptedVendor(): Promise<ScriptedVendor> {
  let replies: readonly Reply[] = [];
  let seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const headers = Object.fromEntries(
      Object.entries(request.headersDistinct).map(([name, all]) => [name, String(all)]),
    );
    const body = await text(request);
    if (request.method !== 'POST') {
      response.writeHead(404).end();
      return;
    }
    seen.push({ path: request.url ?? '', headers, body });
    const reply = replies[Math.min(seen.length, replies.length) - 1] ?? { status: 500 };
    const type = reply.events === undefined ? 'application/json' : 'text/event-stream';
    response.writeHead(reply.status ?? 200, { 'content-type': type, ...reply.headers });
    // As vendors do: a stream has its figures where they are asked for.
    const isAsked = /"include_usage":\s*true/.test(body);
    for (const event of reply.events ?? []) if (isAsked || !event.includes('"choices":[]')) response.write(event);
    response.end(reply.body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,

    script(next) {
      replies = next;
      seen = [];
      return seen;
    },

    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
