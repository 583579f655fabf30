import { threadId } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { defaultThreads, maxInlineCharacters, maxThreads, minThreads } from '../../../src/core/fairness/threads.ts';
import { measured } from './long-text.ts';

test.each([
  { cores: 1, expected: minThreads },
  { cores: 3, expected: 2 },
  { cores: 4, expected: 3 },
  { cores: maxThreads + 1, expected: maxThreads },
  { cores: 64, expected: maxThreads },
])('a process has one thread less than there are cores, within its limits: $cores cores', ({ cores, expected }) => {
  expect(defaultThreads(cores)).toBe(expected);
});

const short = 'x'.repeat(maxInlineCharacters);
const long = `${short}x`;

test('short texts are worked on here; long ones, and those that become long, in another thread', async () => {
  expect(await measured(short, {})).toEqual({ length: short.length, threadId });
  for (const text of [long, 'grows']) {
    const { length, threadId: worker } = await measured(text, {});
    expect(length).toBe(text.length);
    expect(worker).not.toBe(threadId);
  }
});

test('a refusal arrives whole from another thread, and another error with its message', async () => {
  for (const text of ['', long]) {
    await expect(measured(text, { fault: 'refusal' })).rejects.toMatchObject({
      name: 'AnnalsError',
      status: 409,
      message: 'no',
      details: [{ field: 'a', message: 'b' }],
      headers: { a: 'b' },
    });
    await expect(measured(text, { fault: 'error' })).rejects.toThrow('broken');
  }
});
