import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text as bodyOf } from 'node:stream/consumers';
import type { ToolDefinition } from '../../../src/desk/mcp/tool-definition.ts';
import { ownPort } from '../server/own-port.ts';

/** A message of JSON-RPC that came. */
export interface RpcMessage {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: unknown; readonly capabilities?: unknown };
  readonly error?: { readonly code: number };
}

export interface ToolRequest {
  readonly verb: string;
  readonly headers: IncomingHttpHeaders;
  readonly message: RpcMessage;
  /** The message as it came. */
  readonly text: string;
}

/** Answers a message as it likes. Returns false where the server is to answer as usual. */
export type Misbehave = (message: RpcMessage, response: ServerResponse) => boolean;

/** A server of tools on loopback that does whatever a test wants. */
export interface ToolServerStub {
  readonly url: string;
  readonly requests: ToolRequest[];
  tools: (ToolDefinition & Record<string, unknown>)[];
  /** What each call of a tool answers. */
  answer: (message: RpcMessage) => object;
  misbehave: Misbehave;
  close(): Promise<void>;
}

export const objectSchema = { type: 'object', properties: { q: { type: 'string' } } };

/** The revision is 2025-11-25: with a session, answers in JSON. */
export async function startToolServer(): Promise<ToolServerStub> {
  const server = createServer((request, response) => {
    bodyOf(request)
      .then((text) => serve(text, request.method ?? '', request.headers, response))
      .catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stub: ToolServerStub = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests: [],
    tools: [],
    answer: () => ({ content: [{ type: 'text', text: 'found it' }] }),
    misbehave: () => false,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  function serve(text: string, verb: string, headers: IncomingHttpHeaders, response: ServerResponse): void {
    const message: RpcMessage = text === '' ? {} : JSON.parse(text);
    stub.requests.push({ verb, headers, message, text });
    if (stub.misbehave(message, response)) return;
    switch (message.method) {
      case 'initialize':
        sendResult(
          response,
          message,
          { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'stub', version: '1' } },
          { 'mcp-session-id': 'session-1' },
        );
        return;
      case 'tools/list':
        sendResult(response, message, { tools: stub.tools });
        return;
      case 'tools/call':
        sendResult(response, message, stub.answer(message));
        return;
      default:
        if (message.id === undefined || message.method === undefined) response.writeHead(202).end();
        else send(response, { jsonrpc: '2.0', id: message.id, error: { code: -32_601, message: 'Method not found' } });
    }
  }
  return stub;
}

export function sendResult(
  response: ServerResponse,
  { id }: RpcMessage,
  result: object,
  headers: Record<string, string> = {},
): void {
  send(response, { jsonrpc: '2.0', id, result }, headers);
}

function send(response: ServerResponse, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** The protocol's own server for tests of clients, in a process of its own. */
export async function startServerEverything(): Promise<{ url: string; close(): Promise<void> }> {
  const folder = dirname(
    createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/package.json'),
  );
  for (let attempt = 1; ; attempt += 1) {
    const port = await ownPort();
    const running = spawn(process.execPath, [join(folder, 'dist/index.js'), 'streamableHttp'], {
      env: { ...process.env, PORT: String(port) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    const listening = await new Promise<boolean>((resolve) => {
      // Read until it exits: a pipe that nobody reads, or whose end is closed, would disturb the server.
      running.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-2_000);
        if (said.includes('listening on port')) resolve(true);
      });
      running.on('exit', () => resolve(false)).on('error', () => resolve(false));
    });
    if (listening) {
      return {
        url: `http://127.0.0.1:${port}/mcp`,
        async close() {
          running.kill('SIGKILL');
          if (running.exitCode === null && running.signalCode === null) await once(running, 'exit');
        },
      };
    }
    // Another process may have taken the port since it was found free.
    if (attempt === 5) throw new Error(`The protocol's test server does not start: ${said}`);
  }
}
