import { expect, test } from 'vitest';
import { repeat } from '../../src/core/repeat.ts';

test('a turn that fails is told, and the next one comes all the same, until it is ended', async () => {
  const stop = new AbortController();
  const told: unknown[] = [];
  let turns = 0;
  await repeat({
    every: 1,
    signal: stop.signal,
    async run() {
      turns += 1;
      if (turns === 2) throw new Error('the second');
      if (turns === 4) stop.abort();
    },
    onError: (error) => told.push(error),
  });
  expect([turns, told]).toEqual([4, [new Error('the second')]]);
});

test('it ends in the middle of a rest, and not before the turn that runs has ended', async () => {
  const stop = new AbortController();
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  let ended = false;
  const resting = repeat({ every: 3_600_000, signal: stop.signal, run: async () => {}, onError: () => {} });
  const working = repeat({ every: 1, signal: stop.signal, run: () => held, onError: () => {} }).then(() => {
    ended = true;
  });
  await Promise.resolve();
  stop.abort();
  await resting;
  expect(ended).toBe(false);
  release();
  await working;
});
