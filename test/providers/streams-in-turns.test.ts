import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { defaultSlice } from '../../src/core/fairness/time-slice.ts';
import { doWork } from '../../src/core/fairness/work.ts';
import { streamed } from '../../src/providers/answer-body.ts';
import { newExchange } from '../../src/providers/http-exchange.ts';
import { createLanguageModels } from '../../src/providers/language-models.ts';
import type { ModelCall } from '../../src/providers/port.ts';

const event = (text: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
const last = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;
/** Each takes a millisecond of processor time: several slices, for each of the streams. */
const texts = Array.from({ length: 200 }, (_, index) => `token ${index} 😀 ${'x'.repeat(300)}`);
/** More than a socket gives at once, 64 KiB. */
const chunk = Buffer.from(texts.map(event).join('') + last);

const call: ModelCall = {
  provider: 'openai',
  model: 'm',
  apiKey: 'k',
  messages: [{ role: 'user', content: 'Hello' }],
  maxTokens: 10,
  times: { silence: 60_000, total: 600_000 },
};

/** Models whose streams are these bytes. */
function modelsOf(content: () => Readable) {
  return createLanguageModels({
    baseUrls: {},
    transports: {
      vendors: {
        fetchFor: (exchange, { deadline, adapter }) => {
          exchange.requests = 1;
          exchange.left = true;
          exchange.status = 200;
          return async () => streamed(content(), { exchange, deadline, adapter, release: () => {} });
        },
        close() {},
      },
    },
  });
}

/** Keeps the event loop for at least a millisecond. */
function compute(): void {
  for (const end = performance.now() + 1; performance.now() < end; );
}

test.each([1, 4])(
  '%s streams hand on every delta in order, and no turn of the event loop has more than a slice of them',
  async (count) => {
    const models = modelsOf(() => Readable.from([chunk], { objectMode: false }));
    let ofTurn = 0;
    let most = 0;
    let isOver = false;
    const turns = () => {
      ofTurn = 0;
      if (!isOver) setImmediate(turns);
    };
    turns();
    const read = async (tenant: string) => {
      const parts: string[] = [];
      const answer = await doWork({ tenant }, () =>
        models.call(call, (text) => {
          compute();
          parts.push(text);
          ofTurn += 1;
          most = Math.max(most, ofTurn);
        }),
      );
      expect(parts).toEqual(texts);
      expect(answer).toMatchObject({ text: texts.join(''), finishReason: 'stop' });
    };
    await Promise.all(Array.from({ length: count }, (_, index) => read(`tenant ${index % 2}`))).finally(
      () => (isOver = true),
    );
    // A slice has 8 ms, of which each delta takes one at least, and a stream one more. Two slices may meet in a turn.
    expect(most).toBeLessThanOrEqual(2 * (defaultSlice + count + 2));
  },
);

test('what no reader takes is not read from the vendor', async () => {
  let given = 0;
  const content = new Readable({
    read() {
      given += chunk.length;
      this.push(chunk);
    },
  });
  const deadline = { heard() {}, paused() {} };
  const adapter = {
    answers: {
      whole: () => ({ is: 'unknown' as const }),
      stream: () => ({
        isComplete: false,
        read: (value: unknown) => ({ is: 'answer' as const, value: value as object }),
      }),
    },
    usageIn: () => undefined,
  };
  const { body } = streamed(content, { exchange: newExchange(), deadline, adapter, release: () => {} });
  const reader = body?.getReader();
  await reader?.read();
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
  expect(given).toBeLessThanOrEqual(3 * chunk.length);
  await reader?.cancel();
  expect(content.destroyed).toBe(true);
});
