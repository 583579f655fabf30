import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * A provider without a language model: it makes up OpenAI's chat completions and responses, and
 * Anthropic's messages, and says so in each.
 */
export interface MadeUpProvider extends AsyncDisposable {
  readonly baseUrl: string;
}

interface Body {
  readonly model?: string;
  readonly stream?: boolean;
  readonly messages?: readonly { readonly role: string; readonly content?: unknown }[];
  /** Of a response: the messages. */
  readonly input?: string | Body['messages'];
  readonly tools?: readonly { readonly function?: { readonly name?: string } }[];
}

/** The tool with which agents read the change history. */
const historyTool = 'change-history';
/** Milliseconds between two words of a stream. */
const pause = 25;

/** Starts the provider on a free port of this machine. */
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
  const body = request.method === 'POST' ? ((await json(request)) as Body) : {};
  const path = request.url?.replace(/\?.*/, '');
  if (path === '/v1/responses') await respond(body, response);
  else if (path === '/v1/chat/completions') await complete(body, response);
  else if (path === '/v1/messages') await sendMessage(body, response);
  else if (path === '/v1/messages/count_tokens') {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ input_tokens: usageOf(body, { content: '' }).prompt_tokens }));
  } else {
    response.writeHead(404, { 'content-type': 'application/json' });
    const message = 'The made-up provider of the demo has chat/completions, responses and messages alone.';
    response.end(JSON.stringify({ error: { message } }));
  }
}

async function complete(body: Body, response: ServerResponse): Promise<void> {
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

async function respond({ model, stream, input = [] }: Body, response: ServerResponse): Promise<void> {
  const chat = { messages: typeof input === 'string' ? [{ role: 'user', content: input }] : input };
  const text = messageOf(chat).content ?? '';
  const { prompt_tokens, completion_tokens, total_tokens } = usageOf(chat, { content: text });
  const usage = {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens,
  };
  const part = { type: 'output_text', text, annotations: [] };
  const item = { id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', status: 'completed', content: [part] };
  const head = { id: `resp_${randomUUID()}`, object: 'response', created_at: Math.floor(Date.now() / 1_000), model };
  const whole = { ...head, status: 'completed', error: null, output: [item], usage };
  if (stream !== true) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(whole));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let sequence = 0;
  const send = (type: string, more: object) => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...more })}\n\n`);
  };
  const place = { item_id: item.id, output_index: 0, content_index: 0 };
  send('response.created', { response: { ...head, status: 'in_progress', error: null, output: [] } });
  send('response.output_item.added', { output_index: 0, item: { ...item, status: 'in_progress', content: [] } });
  send('response.content_part.added', { ...place, part: { ...part, text: '' } });
  for (const delta of wordsOf(text)) {
    send('response.output_text.delta', { ...place, delta, logprobs: [] });
    await sleep(pause);
  }
  send('response.output_text.done', { ...place, text, logprobs: [] });
  send('response.content_part.done', { ...place, part });
  send('response.output_item.done', { output_index: 0, item });
  send('response.completed', { response: whole });
  response.end();
}

async function sendMessage(body: Body, response: ServerResponse): Promise<void> {
  // Its tools are described otherwise, and are not called.
  const text = messageOf({ messages: body.messages ?? [] }).content ?? '';
  const { prompt_tokens, completion_tokens } = usageOf(body, { content: text });
  const usage = { input_tokens: prompt_tokens, output_tokens: completion_tokens };
  const head = { id: `msg_${randomUUID()}`, type: 'message', role: 'assistant', model: body.model };
  const end = { stop_reason: 'end_turn', stop_sequence: null };
  if (body.stream !== true) {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ...head, content: [{ type: 'text', text }], ...end, usage }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (type: string, more: object = {}) => {
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`);
  };
  const begun = { ...head, content: [], stop_reason: null, stop_sequence: null };
  send('message_start', { message: { ...begun, usage: { ...usage, output_tokens: 1 } } });
  send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  for (const word of wordsOf(text)) {
    send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: word } });
    await sleep(pause);
  }
  send('content_block_stop', { index: 0 });
  send('message_delta', { delta: end, usage });
  send('message_stop');
  response.end();
}

function wordsOf(text: string): string[] {
  return text.split(/(?<= )/);
}

type Message = { content: string } | { content: null; tool_calls: object[] };

/** An agent with access to the history reads it once. */
function messageOf({ messages = [], tools = [] }: Body): Message {
  const last = messages.at(-1);
  const mayLook = tools.some((tool) => tool.function?.name === historyTool);
  if (mayLook && last?.role !== 'tool') {
    const call = { name: historyTool, arguments: JSON.stringify({ q: 'entity:product' }) };
    return { content: null, tool_calls: [{ index: 0, id: `call_${randomUUID()}`, type: 'function', function: call }] };
  }
  const question = textOf(messages.findLast(({ role }) => role === 'user')?.content).slice(0, 200);
  const looked = last?.role === 'tool' ? ' It has looked into the change history, as an agent may.' : '';
  return {
    content: `This answer is made up: the demo has no language model behind it, and nothing was paid for.${looked} You wrote: “${question}”`,
  };
}

function deltasOf(message: Message): object[] {
  if (message.content === null) return [{ role: 'assistant', ...message }];
  return [{ role: 'assistant', content: '' }, ...wordsOf(message.content).map((content) => ({ content }))];
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join(' ');
}

/** About four characters are a token. */
function usageOf({ messages = [] }: Body, message: Message) {
  const tokens = (content: unknown) => Math.ceil(JSON.stringify(content).length / 4);
  const [prompt, completion] = [tokens(messages), tokens(message)];
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}
