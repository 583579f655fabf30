import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, eventsOf, putAgent } from '../../support/server/agents.ts';
import { startChats, tenant } from './chats.ts';

const chats = closeAfterAll(await startChats());
const { server, token } = chats;
for (const provider of ['openai', 'anthropic', 'google']) {
  const llmConfig = { provider, model: 'm', apiKey: agentKey };
  await putAgent(server, { tenant, token, id: provider }, { llmConfig, nativeTools: ['change-history'] });
}
afterEach(() => chats.forget());
const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;

test.each([
  ['openai', [{ choices: [{ index: 0, delta: { content: 'hi' } }] }]],
  [
    'anthropic',
    [
      { type: 'message_start', message: { usage: { input_tokens: 10, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
      { type: 'content_block_stop', index: 0 },
    ],
  ],
  ['google', [{ candidates: [{ content: { parts: [{ text: 'hi' }] } }] }]],
] as const)(
  'a streamed chat whose stream of %s ends without its end is an error, and no answer',
  async (agentId, events) => {
    chats.vendor.behave({ kind: 'events', events: events.map(data) });
    const session = { 'session-id': randomUUID() };
    const response = await chats.chat({ agentId, message: 'x' }, session, chats.server, '/chat-stream');
    const seen = eventsOf(await response.text());
    expect(seen.map(({ event }) => event)).toEqual(['token', 'error']);
    expect(seen.at(-1)?.data).toMatchObject({ type: 'provider_error', status: 502 });
    expect(await chats.logsOf(session['session-id'])).toMatchObject([{ severity: 'ERROR', cause: 'bad_answer' }]);
  },
);

test.each(['/chat', '/chat-stream'])(
  'the signature of a thought of google goes back to it with the results of the tool, by %s',
  async (path) => {
    const { vendor } = chats;
    const call = { functionCall: { name: 'change-history', args: { q: 'type:create' } }, thoughtSignature: 'signed' };
    const body = (part: object) => ({ candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }] });
    vendor.behave(() => {
      const answer = body(vendor.requests.length === 1 ? call : { text: 'hi' });
      return path === '/chat'
        ? { kind: 'status', status: 200, body: answer }
        : { kind: 'events', events: [data(answer)] };
    });
    const response = await chats.chat({ agentId: 'google', message: 'x' }, {}, chats.server, path);
    expect(await response.text()).toContain('hi');
    expect(vendor.requests).toHaveLength(2);
    const contents = JSON.stringify(vendor.requests[1]?.body.contents);
    expect(contents).toContain('"thoughtSignature":"signed"');
    expect(contents).toContain('functionResponse');
  },
);

test('an answer that comes packed is the answer of the chat', async () => {
  const whole = { choices: [{ message: { content: 'packed' } }] };
  const body = gzipSync(Buffer.from(JSON.stringify(whole)));
  chats.vendor.behave({ kind: 'bytes', headers: { 'content-encoding': 'gzip' }, body });
  const response = await chats.chat({ agentId: 'openai', message: 'x' });
  expect(await response.json()).toMatchObject([{ message: 'packed' }]);
});
