import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** A model server of an attacker's own. */
export interface OwnModel {
  readonly url: string;
  close(): void;
}

export async function startModel(answer: (response: ServerResponse) => void): Promise<OwnModel> {
  const server = createServer((request, response) => request.resume().once('end', () => answer(response)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Answers with a stream of so many tokens, each followed by a pause in milliseconds. Ends early where nobody listens. */
export async function streamTokens(response: ServerResponse, tokens: number, pause: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let token = 0; token < tokens && !response.destroyed; token += 1) {
    response.write(deltaOf({ content: `t${token} ` }));
    await sleep(pause);
  }
  response.end(`${deltaOf({}, 'stop')}data: [DONE]\n\n`);
}

/** An event of a stream, as it is sent. */
export function deltaOf(delta: object, reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}
