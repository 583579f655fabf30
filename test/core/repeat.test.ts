import { expect, test } from 'vitest';
import { GrowingPause, repeat } from '../../src/core/repeat.ts';

test('a turn that fails is reported, and the next one runs all the same, until the signal aborts', async () => {
  const stop = new AbortController();
  const errors: unknown[] = [];
  let turns = 0;
  await repeat({
    every: 1,
    signal: stop.signal,
    async run() {
      turns += 1;
      if (turns === 2) throw new Error('the second');
      if (turns === 4) stop.abort();
    },
    onError: (error) => errors.push(error),
  });
  expect([turns, errors]).toEqual([4, [new Error('the second')]]);
});

test('it ends in the middle of a rest, and not before the turn that runs has ended', async () => {
  const stop = new AbortController();
  const { promise: gate, resolve: release } = Promise.withResolvers<void>();
  let ended = false;
  const resting = repeat({ every: 3_600_000, signal: stop.signal, run: async () => {}, onError: () => {} });
  const working = repeat({ every: 1, signal: stop.signal, run: () => gate, onError: () => {} }).then(() => {
    ended = true;
  });
  await Promise.resolve();
  stop.abort();
  await resting;
  expect(ended).toBe(false);
  release();
  await working;
});

test('a pause doubles up to its limit, and starts over after a success', () => {
  const pause = new GrowingPause({ min: 200, max: 1_000 });
  expect([1, 2, 3, 4, 5].map(() => pause.next())).toEqual([200, 400, 800, 1_000, 1_000]);
  pause.reset();
  expect(pause.next()).toBe(200);
});

test('chance shortens a pause by half at most, and its growth not at all', () => {
  const chances = [0, 1, 0.5, 0];
  const pause = new GrowingPause({ min: 200, max: 1_000, random: () => chances.shift() ?? 1 });
  expect([1, 2, 3, 4, 5].map(() => pause.next())).toEqual([100, 400, 600, 500, 1_000]);
});

test('work that fails is repeated later each time, until it succeeds', async () => {
  const stop = new AbortController();
  const times: number[] = [];
  await repeat({
    every: 20,
    signal: stop.signal,
    async run() {
      if (times.push(performance.now()) === 4) stop.abort();
      throw new Error('no room');
    },
    onError: () => {},
  });
  for (const [place, least] of [20, 40, 80].entries()) {
    expect((times[place + 1] ?? 0) - (times[place] ?? 0)).toBeGreaterThan(least - 2);
  }
});
