import { expect, test } from 'vitest';
import { converse, toolLimits } from '../../../src/desk/agents/conversation.ts';
import type { ModelPrompt } from '../../../src/desk/agents/model-caller.ts';
import type { AskHistory } from '../../../src/desk/agents/ports.ts';
import { textsOf } from '../../../src/providers/adapter.ts';
import { maxResultBytes } from '../../../src/query/model-tool.ts';

const call = { name: 'change-history', input: '{"q":"entity:order"}' };

/**
 * Chats with a model that calls the tool so often, in answers of `toolLimits.calls`. Resolves with the results.
 */
async function resultsOf(calls: number, askHistory: AskHistory, contextTokens = 1_000_000): Promise<string[]> {
  const rounds: ModelPrompt['messages'][] = [];
  let left = calls;
  await converse(
    {
      askHistory,
      now: () => 0,
      models: {
        outputCap: () => 1_000,
        async call(_target, { messages }) {
          rounds.push(messages);
          const toolCalls = Array.from({ length: Math.min(left, toolLimits.calls) }, (_none, index) => ({
            id: `${left - index}`,
            ...call,
          }));
          left -= toolCalls.length;
          return { text: 'Done.', toolCalls, finishReason: 'stop', usage: { inputTokens: 1, outputTokens: 1 } };
        },
      },
    },
    {
      target: {
        tenant: 'acme',
        clientId: 'c',
        agentId: 'a',
        llmConfig: { provider: 'openai', model: 'm', contextTokens },
        apiKey: '',
      },
      userPrompt: '',
      message: 'What is new?',
      offersHistory: true,
      reader: { clientId: 'c', clientName: 'Jane', scopes: [] },
      remote: undefined,
      whyWithheld: '',
      earlier: async () => ({ turns: [], total: 0, withheld: 0, fromHistory: false }),
      beforeCall: async () => {},
      report: () => {},
      note: () => {},
    },
  );
  return (rounds.at(-1) ?? []).flatMap((message) =>
    message.role === 'tool' ? message.results.flatMap(({ output }) => textsOf(output)) : [],
  );
}

test.each([
  ['uses all of its 256 KiB runs no further call', 0],
  ['has a byte left runs one more', 1],
])('a chat that %s', async (_title, spared) => {
  const whole = Math.floor(toolLimits.resultBytes / maxResultBytes);
  const allowed: number[] = [];
  const results = await resultsOf(whole + 2, async (_tenant, { maxBytes }) => {
    allowed.push(maxBytes);
    const length = allowed.length > whole ? maxBytes - spared : maxBytes;
    return { text: 'x'.repeat(length), shown: 1, left: 0, cut: 0, total: 1 };
  });
  expect(allowed).toEqual([
    ...Array.from({ length: whole }, () => maxResultBytes),
    toolLimits.resultBytes % maxResultBytes,
    ...Array.from({ length: spared }, () => spared),
  ]);
  const exhausted = results.filter((result) => result.includes('The results of this chat have reached their 256 KiB.'));
  expect(exhausted).toHaveLength(1 - spared);
});

test('results fit into the window of the model together; further ones are replaced by a note', async () => {
  const window = 8_192;
  const allowed: number[] = [];
  const results = await resultsOf(
    6,
    async (_tenant, { maxBytes }) => {
      allowed.push(maxBytes);
      return { text: 'x'.repeat(Math.min(maxBytes, 4_000)), shown: 1, left: 0, cut: 0, total: 1 };
    },
    window,
  );
  // Two bytes a token, less the answer's 1,000 tokens, the tool and its calls; a result is text within JSON.
  expect(allowed[0]).toBeLessThan((window - 1_000) * 2 * 0.75);
  expect(allowed.map((bytes) => (allowed[0] ?? 0) - bytes)).toEqual(allowed.map((_bytes, index) => index * 4_000));
  expect(results.join('').length).toBeLessThan((window - 1_000) * 2);
  expect(results.at(-1)).toContain('The context of the model has no room for another result.');
});
