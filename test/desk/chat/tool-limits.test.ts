import { randomUUID } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { maxRequestBytes } from '../../../src/desk/agents/chat-context.ts';
import { maxTextBytes, toolLimits } from '../../../src/desk/agents/conversation.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { agentKey, callAgentic, putAgent } from '../../support/server/agents.ts';
import { schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const tenant = 'acme';
const digits = '9007199254740993';
const figures = { prompt_tokens: 10, completion_tokens: 5 };

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));
const token = await server.token(tenant, { name: 'Jane Doe' });
const ofModel = { provider: 'openai', model: 'm', apiKey: agentKey, contextTokens: 1_000_000 };
await putAgent(server, { tenant, token, id: 'desk' }, { llmConfig: ofModel, nativeTools: ['change-history'] });
const schema = schemaClient(server, tenant, token);
await schema.type('PRODUCT');
for (let index = 0; index < 4; index += 1) {
  await schema.post('/PRODUCT/instances', `{"text":"${'x'.repeat(20_000)}","number":${digits}}`);
}

afterEach(() => {
  vendor.requests.length = 0;
});

test(`an answer may have ${toolLimits.calls} tool calls`, async () => {
  callTools([toolLimits.calls]);
  const { status, messages } = await ask();
  expect(status).toBe(200);
  expect(resultsSent()).toHaveLength(toolLimits.calls);
  expect(resultsSent().at(-1)).not.toContain('further calls');
  expect(messages.filter((line) => line.startsWith('Tool round 1'))).toHaveLength(toolLimits.calls);
});

test('of 3,000 tool calls the first 16 are run, and the model gets the number of the others', async () => {
  callTools([3_000]);
  const { status, messages } = await ask();
  expect(status).toBe(200);
  expect(resultsSent()).toHaveLength(toolLimits.calls);
  expect(resultsSent().at(-1)).toContain('2984 further calls were left out: an answer may have 16 at most.');
  expect(messages).toContain('Tool round 1: 2984 calls beyond 16 left out.');
  const sent = vendor.requests[1]?.body.messages?.find(({ role }) => role === 'assistant');
  expect(sent).toMatchObject({ tool_calls: { length: toolLimits.calls } });
});

test('the results of a chat have 256 KiB together; further ones are replaced by a note', async () => {
  // Two entries of 20 kB fit into each result, so eight results are well beyond.
  callTools([4, 4, 4]);
  const { status, messages } = await ask();
  expect(status).toBe(200);
  const results = vendor.requests.at(-1)?.body.messages?.filter(({ role }) => role === 'tool') ?? [];
  const contents = results.map(({ content }) => String(content));
  expect(contents).toHaveLength(12);
  const bytes = Buffer.byteLength(contents.join(''));
  expect(bytes).toBeGreaterThan(toolLimits.resultBytes - 24_000);
  expect(bytes).toBeLessThan(toolLimits.resultBytes + 8_000);
  // One that fits in part is cut to the entries that do.
  expect(contents.some((text) => text.includes('"shown"') || text.includes('entries of this page were left out'))).toBe(
    true,
  );
  expect(contents.at(-1)).toContain('The results of this chat have reached their 256 KiB.');
  expect(contents[3]).not.toContain('have reached their');
  expect(messages.at(-2)).toContain('not run: the results of this chat have reached their limit');
});

test('a shortened answer of the history keeps every digit', async () => {
  callTools([1]);
  await ask();
  const [result = ''] = resultsSent();
  expect(result).toContain('entries of this page were left out');
  expect(result).toContain(`"number":{"after":${digits}}`);
  expect(result).toContain('"totalElements":4');
  expect(JSON.parse(result)).toMatchObject({ items: { length: 2 }, note: /^2 entries/ });
});

test(`the input of a call has at most ${toolLimits.inputBytes} bytes; a longer one is no query`, async () => {
  const query = (length: number) => JSON.stringify({ q: `actor:"${'a'.repeat(length)}"` });
  const around = query(0).length;
  callTools([1, 1], (round) => query(toolLimits.inputBytes - around + (round - 1)));
  await ask();
  const results = vendor.requests.at(-1)?.body.messages?.filter(({ role }) => role === 'tool') ?? [];
  expect(String(results[0]?.content)).toContain('characters');
  expect(String(results[1]?.content)).toContain('The input must be');
  expect(JSON.stringify(vendor.requests.at(-1)?.body).length).toBeLessThan(2 * toolLimits.inputBytes);
});

test(`the answers of a chat have at most ${maxTextBytes} bytes of text together`, async () => {
  const text = 'a'.repeat(maxTextBytes / 2);
  callTools([1], undefined, text);
  const fitting = await ask();
  expect(fitting.status).toBe(200);
  callTools([1, 1], undefined, text);
  expect(await ask()).toMatchObject({ status: 502 });
});

test(`however much a model takes, it is sent at most ${maxRequestBytes} bytes`, async () => {
  const llmConfig = { provider: 'openai', model: 'm', apiKey: agentKey, contextTokens: 10_000_000 };
  await putAgent(server, { tenant, token, id: 'vast' }, { llmConfig });
  const sessionId = randomUUID();
  vendor.behave({ kind: 'answer', text: 'b'.repeat(500_000) });
  const message = 'c'.repeat(500_000);
  for (let round = 0; round < 6; round += 1) expect((await ask('vast', sessionId, message)).status).toBe(200);
  const lengths = vendor.requests.map(({ body }) => JSON.stringify(body).length);
  expect(Math.max(...lengths)).toBeLessThan(maxRequestBytes);
  expect(lengths.at(-1)).toBeGreaterThan(maxRequestBytes - 1_000_000);
  expect((await ask('vast', sessionId, message)).messages.join()).toContain('The context was cut');
});

test('what was cut off, filtered or not sent is a warning in the request log', async () => {
  const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', temperature: 0.2, apiKey: agentKey };
  await putAgent(server, { tenant, token, id: 'warm' }, { llmConfig });
  vendor.behave({ kind: 'answer', text: 'Half', finish: 'length' });
  expect(await ask('warm')).toMatchObject({
    severity: 'WARNING',
    messages: expect.arrayContaining([
      'The model does not take these settings, and they were left out: temperature.',
      'The answer was cut off: it reached its maximum of tokens.',
    ]),
  });
  vendor.behave({ kind: 'answer', text: 'Half', finish: 'content_filter' });
  expect((await ask('warm')).messages).toContain('The filter of the provider held back the rest of the answer.');
  vendor.behave({ kind: 'answer', text: '', finish: 'content_filter' });
  expect(await ask('warm')).toMatchObject({ status: 502, severity: 'ERROR', cause: 'content_filtered' });
});

/** The vendor calls the tool so many times in each round, and then answers. */
function callTools(
  counts: readonly number[],
  inputOf = (_round: number) => '{"q":"entity:PRODUCT"}',
  content = '',
): void {
  vendor.behave(() => {
    const round = vendor.requests.length;
    const count = counts[round - 1] ?? 0;
    const calls = Array.from({ length: count }, (_, index) => ({
      id: `call-${round}-${index}`,
      type: 'function',
      function: { name: 'change-history', arguments: inputOf(round) },
    }));
    const message = {
      role: 'assistant',
      content: content || (count === 0 ? 'Done.' : ''),
      ...(count === 0 ? {} : { tool_calls: calls }),
    };
    const choice = { index: 0, message, finish_reason: count === 0 ? 'stop' : 'tool_calls' };
    return { kind: 'status', status: 200, body: { choices: [choice], usage: figures } };
  });
}

/** The results that the second request of the vendor has. */
function resultsSent(): string[] {
  const messages = vendor.requests[1]?.body.messages ?? [];
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
}

async function ask(agentId = 'desk', sessionId: string = randomUUID(), message = 'What is new?') {
  vendor.requests.length = 0;
  const call = { tenant, token, path: '/chat', headers: { 'session-id': sessionId } };
  const { status } = await callAgentic(server, call, { agentId, message });
  const path = `/logs/requests?q=sessionId:${sessionId}&pageSize=500`;
  const logs = (await (await callAgentic(server, { tenant, token, path, method: 'GET' })).json()) as {
    severity: string;
    cause?: string;
    messages: { message: string }[];
  }[];
  const log = logs.at(-1);
  return {
    status,
    severity: log?.severity,
    cause: log?.cause,
    messages: log?.messages.map((line) => line.message) ?? [],
  };
}
