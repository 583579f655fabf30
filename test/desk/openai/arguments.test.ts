import * as fc from 'fast-check';
import type OpenAI from 'openai';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { startOpenai } from './openai-server.ts';

const tenant = 'acme';
const user = { role: 'user', content: 'Hello' } as const;
const tools = [{ type: 'function', function: { name: 'pay', parameters: { type: 'object' } } }] as const;

const openai = closeAfterAll(await startOpenai());
await openai.tenantWithKeys(tenant);
const client = await openai.clientOf(tenant);

const scalar = fc.oneof(
  fc.constantFrom('1.0', '1.10', '-0', '1e400', '-1E-400', '12345678901234567890.10', '9007199254740993', '0.1e+07'),
  fc.constantFrom(
    'true',
    'false',
    'null',
    '""',
    '"\\u00e9\\/\\ud83d\\ude00"',
    '"\\u0000"',
    '"\\ud800"',
    '"{\\"a\\":1}"',
  ),
  fc.string({ unit: 'grapheme' }).map((text) => JSON.stringify(text)),
);
const name = fc.oneof(
  fc.constantFrom('a', '2', '1', 'input', 'args', 'arguments', '__proto__', 'constructor', 'id', ''),
  fc.string({ unit: 'grapheme' }),
);

/** Compact texts of JSON objects, with members that come twice. */
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    scalar,
    tie('object'),
    fc.array(tie('value'), { maxLength: 3 }).map((values) => `[${values.join(',')}]`),
  ),
  object: fc
    .array(fc.tuple(name, tie('value')), { minLength: 1, maxLength: 4 })
    .map((members) => `{${members.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`),
}));

/** An answer that calls a tool with these arguments. */
const answers = {
  anthropic: (args: string) =>
    `{"content":[{"type":"tool_use","id":"c1","name":"pay","input":${args}}],"stop_reason":"tool_use"}`,
  google: (args: string) =>
    `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"pay","args":${args}}}]},"finishReason":"STOP"}]}`,
};

test.each(['anthropic', 'google'] as const)(
  'any arguments of a tool stay as they are, both ways: %s',
  async (provider) => {
    const model = `${provider}/some-model`;
    await checkLaw(object, { runs: 60 }, async (args) => {
      const headers = { 'content-type': 'application/json' };
      openai.vendor.behave({ kind: 'bytes', headers, body: Buffer.from(answers[provider](args)) });
      const { choices } = await client.chat.completions.create({ model, messages: [user], tools: [...tools] });
      const message = choices[0]?.message;
      const [call] = message?.tool_calls ?? [];
      if (message === undefined || call?.type !== 'function') throw new Error('no call');
      expect(call.function.arguments).toBe(args);
      openai.vendor.behave({ kind: 'answer' });
      const result: OpenAI.ChatCompletionToolMessageParam = { role: 'tool', tool_call_id: call.id, content: 'paid' };
      await client.chat.completions.create({ model, messages: [user, message, result], tools: [...tools] });
      expect(openai.vendor.requests.at(-1)?.bodyText).toContain(args);
      openai.vendor.requests.length = 0;
    });
  },
);
