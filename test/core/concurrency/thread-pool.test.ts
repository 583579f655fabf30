import { expect, test } from 'vitest';
import { defaultThreads, maxThreads } from '../../../src/core/concurrency/thread-pool.ts';

test.each([
  { cores: 1, threads: 1, bodies: 2 },
  { cores: 2, threads: 1, bodies: 2 },
  { cores: 3, threads: 2, bodies: 2 },
  { cores: 4, threads: 3, bodies: 3 },
  { cores: maxThreads + 1, threads: maxThreads, bodies: maxThreads },
  { cores: 64, threads: maxThreads, bodies: maxThreads },
])('a pool has one thread less than there are cores, within its limits: $cores cores', ({ cores, threads, bodies }) => {
  expect(defaultThreads(1, cores)).toBe(threads);
  expect(defaultThreads(2, cores)).toBe(bodies);
});
