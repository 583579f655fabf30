import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

/** A provider of language models without one: it answers OpenAI's chat completions, and says so in each answer. */
export interface MadeUpProvider extends AsyncDisposable {
  readonly baseUrl: string;
}

interface Body {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly { readonly role: string; readonly content?: unknown }[];
  readonly tools?: readonly { readonly function?: { readonly name?: string } }[];
}

/** The tool of agents that looks into the change history. */
const historyTool = 'change-history';
/** Milliseconds between two words of a stream. */
const pause = 25;

/** Starts it on a free port of this machine. */
export async function startMadeUpProvider(): Promise<MadeUpProvider> {
  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== 'POST' || !request.url?.endsWith('/chat/completions')) {
    request.resume();
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(
      JSON.stringify({ error: { message: 'The made-up provider of the demo has chat/completions alone.' } }),
    );
    return;
  }
  const body = (await json(request)) as Body;
  const head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1_000), model: body.model };
  const message = messageOf(body);
  const finish = 'tool_calls' in message ? 'tool_calls' : 'stop';
  const usage = usageOf(body, message);
  if (body.stream !== true) {
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (chunk: object) => {
    response.write(`data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...chunk })}\n\n`);
  };
  for (const delta of deltasOf(message)) {
    send({ choices: [{ index: 0, delta, finish_reason: null }] });
    await sleep(pause);
  }
  send({ choices: [{ index: 0, delta: {}, finish_reason: finish }] });
  send({ choices: [], usage });
  response.end('data: [DONE]\n\n');
}

type Message = { content: string } | { content: null; tool_calls: object[] };

/** An agent that may look into the history looks once. */
function messageOf({ messages = [], tools = [] }: Body): Message {
  const last = messages.at(-1);
  const mayLook = tools.some((tool) => tool.function?.name === historyTool);
  if (mayLook && last?.role !== 'tool') {
    const call = { name: historyTool, arguments: JSON.stringify({ q: 'entity:product' }) };
    return { content: null, tool_calls: [{ index: 0, id: `call_${randomUUID()}`, type: 'function', function: call }] };
  }
  const asked = textOf(messages.findLast(({ role }) => role === 'user')?.content).slice(0, 200);
  const looked = last?.role === 'tool' ? ' It has looked into the change history, as an agent may.' : '';
  return {
    content: `This answer is made up: the demo has no language model behind it, and nothing was paid for.${looked} You wrote: “${asked}”`,
  };
}

function deltasOf(message: Message): object[] {
  if (message.content === null) return [{ role: 'assistant', ...message }];
  const words = message.content.split(/(?<= )/);
  return [{ role: 'assistant', content: '' }, ...words.map((content) => ({ content }))];
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join(' ');
}

/** Some four characters are a token. */
function usageOf({ messages = [] }: Body, message: Message): object {
  const [prompt, completion] = [messages, message].map((text) => Math.ceil(JSON.stringify(text).length / 4));
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: (prompt ?? 0) + (completion ?? 0) };
}
