import { afterEach, expect, test, vi } from 'vitest';
import { TimeSlice } from '../../../src/core/fairness/time-slice.ts';
import { enterWork, Work } from '../../../src/core/fairness/work.ts';

afterEach(() => vi.restoreAllMocks());

/** Computes until the slice is used up. */
function useUp(slice: TimeSlice): void {
  while (!slice.isDue) Math.sqrt(2);
}

test('a slice is due after its length, and a rest begins a new one', async () => {
  const began = performance.now();
  const slice = new TimeSlice(5);
  useUp(slice);
  expect(performance.now() - began).toBeGreaterThanOrEqual(5);
  await slice.rest();
  expect(new TimeSlice(60_000).isDue).toBe(false);
});

test('two computations continue in turns, and other events come between them', async () => {
  const order: string[] = [];
  const compute = async (name: string) => {
    const slice = new TimeSlice(0);
    for (let step = 0; step < 3; step++) {
      order.push(name);
      await slice.rest();
    }
  };
  setImmediate(() => order.push('event'));
  await Promise.all([compute('a'), compute('b')]);
  expect(order).toEqual(['a', 'b', 'event', 'a', 'b', 'a', 'b']);
});

test('a computation whose work is aborted ends where it rests', async () => {
  const work = new Work({ tenant: 'acme' });
  const slice = enterWork(work, () => new TimeSlice());
  work.abort(new Error('gone'));
  await expect(slice.rest()).rejects.toThrow('gone');
});

test('computations of one turn of the loop share a slice, except for a millisecond of each', async () => {
  let clock = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  const first = new TimeSlice(8);
  await first.rest();
  clock += 7.9;
  expect(first.isDue).toBe(false);
  const second = new TimeSlice(8);
  clock += 0.2;
  expect([first.isDue, second.isDue]).toEqual([true, false]);
  clock += 0.9;
  expect(second.isDue).toBe(true);
  await second.rest();
  clock += 7.9;
  expect(second.isDue).toBe(false);
});

test('tenants whose computations rest take turns', async () => {
  const order: string[] = [];
  const compute = async (tenant: string) => {
    await enterWork(new Work({ tenant }), () => new TimeSlice()).rest();
    order.push(tenant);
  };
  await Promise.all([compute('loud'), compute('loud'), compute('loud'), compute('quiet')]);
  expect(order).toEqual(['loud', 'quiet', 'loud', 'loud']);
});
