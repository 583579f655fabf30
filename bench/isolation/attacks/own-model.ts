import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Attacker } from './attack.ts';

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

/** Creates an agent whose model the attacker runs at that address. */
export async function makeAgent({ tenant, call }: Attacker, id: string, modelUrl: string): Promise<void> {
  const llmConfig = { provider: 'self_hosted', model: 'm', apiKey: 'sk-own', baseUrl: `${modelUrl}/v1` };
  const body = JSON.stringify({ name: { en: id }, nativeTools: ['change-history'], llmConfig });
  const response = await call(`/ai-service/${tenant}/agentic/agents/${id}`, { method: 'PUT', body });
  const text = await response.text();
  if (response.status >= 300) throw new Error(`no agent: ${response.status} ${text}`);
}

/** Streams so many tokens, each followed by a pause in milliseconds. Ends early once the client is gone. */
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
