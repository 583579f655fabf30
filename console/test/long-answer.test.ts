import { expect, test } from 'vitest';
import { failureOf, LongAnswerError, maxAnswerBytes, withinLimit } from '../src/api/failure.ts';

const limit = 1_000;

/** An answer in pieces of 100 bytes, without its length, as the service sends long ones. */
function streamed(bytes: number, type = 'application/json; charset=utf-8'): Response {
  let left = bytes;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const size = Math.min(100, left);
      left -= size;
      if (size === 0) controller.close();
      else controller.enqueue(new Uint8Array(size).fill(49));
    },
  });
  return new Response(body, { headers: { 'content-type': type, 'x-request-id': 'r-1' } });
}

test('an answer of the maximum length is read whole, and one of a byte more is refused with its length', async () => {
  const whole = await withinLimit(streamed(limit), limit);
  expect(await whole.text()).toBe('1'.repeat(limit));
  expect(whole.headers.get('x-request-id')).toBe('r-1');
  const refused = withinLimit(streamed(limit + 1), limit);
  await expect(refused).rejects.toMatchObject({ bytes: limit + 1, isWhole: true, requestId: 'r-1' });
  await expect(withinLimit(streamed(20 * limit), limit)).rejects.toMatchObject({ bytes: 20 * limit, isWhole: true });
});

test('an answer that tells its length is refused before it is read', async () => {
  const answerOf = (length: number) =>
    new Response('[]', { headers: { 'content-type': 'application/json', 'content-length': String(length) } });
  expect(await (await withinLimit(answerOf(limit), limit)).text()).toBe('[]');
  await expect(withinLimit(answerOf(limit + 1), limit)).rejects.toBeInstanceOf(LongAnswerError);
});

test('the length of what was sent compressed says nothing about the answer', async () => {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip', 'content-length': '20' };
  await expect(withinLimit(new Response('1'.repeat(limit + 1), { headers }), limit)).rejects.toBeInstanceOf(
    LongAnswerError,
  );
});

test('a stream of events has no end that could be waited for, so it is not counted', async () => {
  const events = streamed(2 * limit, 'text/event-stream');
  expect(await withinLimit(events, limit)).toBe(events);
});

test('the reader learns how long the answer is, and where it can be downloaded', () => {
  const answer = { url: 'http://127.0.0.1/entries', headers: new Headers() } as const;
  const error = new LongAnswerError({ bytes: 3 * maxAnswerBytes, isWhole: false }, answer);
  expect(failureOf(error)).toMatchObject({
    title: 'This answer has more than 192 MiB. The console shows at most 64.0 MiB.',
    download: 'http://127.0.0.1/entries',
    mayPass: false,
  });
});
