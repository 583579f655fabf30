import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { beginShortWork, nextTurn, othersHaveShortWork, TimeSlice } from '../../../src/core/fairness/time-slice.ts';
import { enterWork, Work } from '../../../src/core/fairness/work.ts';

// Milliseconds. It moves only where a test says so; each test begins with no tenant at rest and all of them fresh.
let clock = 1e9;
let endShortWork = () => {};

beforeEach(() => {
  clock += 1e6;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
});

afterEach(async () => {
  endShortWork();
  // The turn of the last computation ends by the clock of its test.
  await new Promise(setImmediate);
  vi.restoreAllMocks();
});

/** Takes a turn of the event loop, computes for so many milliseconds of the clock, and lets the turn end. */
async function compute(tenant: string, milliseconds: number): Promise<void> {
  await nextTurn(tenant);
  clock += milliseconds;
  await new Promise(setImmediate);
}

/** Tells whether the work has ended after some turns of the event loop in which timers ran too. */
async function hasEnded(work: Promise<void>): Promise<boolean> {
  let ended = false;
  void work.then(() => {
    ended = true;
  });
  for (let turn = 0; turn < 3; turn += 1) await sleep(10);
  return ended;
}

describe('while another tenant has a short request under way', () => {
  beforeEach(() => {
    endShortWork = beginShortWork('quiet');
  });

  test('a long computation rests for twice as long as it has computed', async () => {
    await compute('loud', 4);
    const next = nextTurn('loud');
    clock += 7.5;
    expect(await hasEnded(next)).toBe(false);
    clock += 0.5;
    await next;
  });

  test('it rests for 50 ms at most', async () => {
    await compute('loud', 30);
    const next = nextTurn('loud');
    clock += 49.5;
    expect(await hasEnded(next)).toBe(false);
    clock += 0.5;
    await next;
  });

  test('long computations of several tenants rest for all of them', async () => {
    await compute('loud', 4);
    await compute('also', 4);
    const next = [nextTurn('loud'), nextTurn('also')];
    // 16 ms for both, of which 4 have passed while the second one computed.
    clock += 11.5;
    expect(await hasEnded(Promise.race(next))).toBe(false);
    clock += 0.5;
    await Promise.all(next);
  });

  test('it continues at once when the short request has ended', async () => {
    await compute('loud', 4);
    const next = nextTurn('loud');
    expect(await hasEnded(next)).toBe(false);
    endShortWork();
    await next;
  });

  test('a tenant that has not computed for 250 ms continues at once', async () => {
    await compute('now and then', 1);
    clock += 240;
    await compute('loud', 8);
    const [next, loud] = [nextTurn('now and then'), nextTurn('loud')];
    clock += 0.5;
    expect(await hasEnded(next)).toBe(false);
    clock += 0.5;
    await next;
    expect(await hasEnded(loud)).toBe(false);
    endShortWork();
    await loud;
  });

  test('a slice is 4 ms long, not 8', async () => {
    const slice = enterWork(new Work({ tenant: 'loud' }), () => new TimeSlice());
    await slice.rest();
    clock += 3.5;
    expect(slice.isDue).toBe(false);
    clock += 0.5;
    expect(slice.isDue).toBe(true);
  });
});

test('the short requests of its own tenant leave a computation as it is', async () => {
  endShortWork = beginShortWork('loud');
  const slice = enterWork(new Work({ tenant: 'loud' }), () => new TimeSlice());
  for (let turn = 0; turn < 3; turn += 1) {
    await slice.rest();
    clock += 7.5;
    expect(slice.isDue).toBe(false);
    clock += 0.5;
    expect(slice.isDue).toBe(true);
  }
});

test('a tenant has short requests under way until the last one has ended, once', () => {
  const ends = [beginShortWork('quiet'), beginShortWork('quiet')];
  expect([othersHaveShortWork('loud'), othersHaveShortWork('quiet')]).toEqual([true, false]);
  ends[0]?.();
  ends[0]?.();
  expect(othersHaveShortWork('loud')).toBe(true);
  ends[1]?.();
  expect(othersHaveShortWork('loud')).toBe(false);
});
