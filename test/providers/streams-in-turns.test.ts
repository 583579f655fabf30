import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { streamed } from '../../src/providers/answer-body.ts';
import { newExchange } from '../../src/providers/http-exchange.ts';

const event = (text: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
const last = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`;
/** Each takes a millisecond of processor time: several slices, for each of the streams. */
const texts = Array.from({ length: 200 }, (_, index) => `token ${index} 😀 ${'x'.repeat(300)}`);
/** More than a socket gives at once, 64 KiB. */
const chunk = Buffer.from(texts.map(event).join('') + last);

test('what no reader takes is not read from the vendor', async () => {
  let supplied = 0;
  const content = new Readable({
    read() {
      supplied += chunk.length;
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
  const { body } = streamed(content, { exchange: newExchange(), deadline, reader: { adapter }, release: () => {} });
  const reader = body?.getReader();
  await reader?.read();
  for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
  expect(supplied).toBeLessThanOrEqual(3 * chunk.length);
  await reader?.cancel();
  expect(content.destroyed).toBe(true);
});
