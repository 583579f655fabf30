import { expect, test } from 'vitest';
import { failuresOf, pauseOf } from '../../../src/delivery/webhooks/retry-schedule.ts';

const minute = 60_000;
const hour = 60 * minute;
const middle = () => 0.5;

test('a batch is tried again at the steps of webhooks, and then every hour', () => {
  const pauses = Array.from({ length: 13 }, (_none, index) => pauseOf(index + 1, undefined, middle));
  const steps = [
    5_000,
    minute,
    5 * minute,
    30 * minute,
    2 * hour,
    5 * hour,
    10 * hour,
    14 * hour,
    20 * hour,
    24 * hour,
  ];
  expect(pauses.map(Math.round)).toEqual([...steps, hour, hour, hour]);
});

test('each pause is up to 20 % longer or shorter, and Retry-After is heeded up to twice the step', () => {
  expect(Math.round(pauseOf(11, 0, () => 0))).toBe(0.8 * hour);
  expect(Math.round(pauseOf(11, 0, () => 1))).toBe(1.2 * hour);
  expect(pauseOf(11, 365 * 24 * hour, middle)).toBe(2 * hour);
  expect(pauseOf(1, 7_000, middle)).toBe(7_000);
  expect(pauseOf(1, hour, middle)).toBe(10_000);
});

test('once the subscription is resumed the steps start over', () => {
  const place = { position: 0, fingerprint: 0, waiting: 0, unreachable: 0, slowed: 0 };
  expect(failuresOf({ state: { ...place, state: 'retrying' } }, { attempts: 9 })).toBe(9);
  expect(failuresOf({ state: { ...place, state: 'active' } }, { attempts: 9 })).toBe(0);
});
