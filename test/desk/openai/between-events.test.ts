import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { streamText } from '../../../src/desk/streamed-answer.ts';
import { createLogger } from '../../../src/http/logger.ts';

/** What stands in a stream after each piece, 15 seconds, and a failure. */
async function streamOf(pieces: readonly string[]): Promise<string> {
  vi.useFakeTimers({ toFake: ['setInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  let text = '';
  const ended = Promise.withResolvers<void>();
  const stream = await streamText(
    async ({ write, begin }) => {
      begin();
      for (const piece of pieces) {
        await write(piece);
        vi.advanceTimersByTime(15_000);
      }
      throw new AnnalsError('provider_error', 'It failed.');
    },
    {
      failed: () => 'data: failed\n\n',
      cuts: { writableLength: 0, destroy: () => ended.resolve() } as never,
      gone: new AbortController().signal,
      logger: createLogger('silent'),
    },
  );
  stream.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await ended.promise;
  await turn();
  return text;
}

const comment = ': still at it\n\n';

test.each(['\n', '\r\n', '\r'])(
  'comments and errors stand only after a blank line, with %j as its line end',
  async (end) => {
    const whole = `data: a${end}${end}`;
    expect(await streamOf([whole, whole])).toBe(`${whole}${comment}${whole}${comment}data: failed\n\n`);
    expect(await streamOf(['data: a', `${end}`, end])).toBe(`${whole}${comment}data: failed\n\n`);
    // The error would become a part of the event: the connection is cut alone.
    expect(await streamOf([whole, 'data: b'])).toBe(`${whole}${comment}data: b`);
    expect(await streamOf([whole, `data: b${end}`])).toBe(`${whole}${comment}data: b${end}`);
  },
);
