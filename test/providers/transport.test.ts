import { expect, test } from 'vitest';
import { anthropic } from '../../src/providers/anthropic.ts';
import { type HttpExchange, newExchange } from '../../src/providers/http-exchange.ts';
import { openai } from '../../src/providers/openai.ts';
import { createTransport } from '../../src/providers/transport.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';

const vendor = closeAfterAll(await startVendor());
vendor.behave({ kind: 'answer', text: 'Good day' });
const transport = closeAfterAll(createTransport());

/** Sends what a package would send, and reads the answer for it. */
async function answerFor(adapter: typeof openai, path: string): Promise<{ exchange: HttpExchange; body: unknown }> {
  const exchange = newExchange();
  const deadline = { heard: () => {}, paused: () => {} };
  const fetch = transport.fetchFor(exchange, { streaming: false, deadline, reader: { adapter } });
  const sent = { model: 'some-model', max_tokens: 100, messages: [{ role: 'user', content: 'x' }] };
  const answer = fetch(`${vendor.baseUrl}${path}`, { body: JSON.stringify(sent) });
  return { exchange, body: await answer.then((response) => response.json()).catch(() => 'rejected') };
}

test('a package that has nothing to read does not wait: its request rejects, and our own reader has the answer', async () => {
  const { exchange, body } = await answerFor(openai, '/v1/chat/completions');
  expect(body).toBe('rejected');
  expect(exchange).toMatchObject({ answered: true, refusal: undefined });
  expect(exchange.wholeAnswer).toEqual({ text: 'Good day', toolCalls: [], finishReason: 'stop' });
});

test('what a package has to read it gets, and our own reader has no answer', async () => {
  const { exchange, body } = await answerFor(anthropic, '/v1/messages');
  expect(body).toMatchObject({ content: [{ type: 'text', text: 'Good day' }] });
  expect(exchange).toMatchObject({ answered: true, wholeAnswer: undefined });
});
