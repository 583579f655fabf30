import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AlertState,
  afterMail,
  type CountedMatch,
  countMatches,
  mailDueAt,
  mailPause,
  nothingCounted,
} from '../../../src/delivery/alerts/alert-state.ts';
import { checkLaw } from '../../support/oracle/law.ts';

const minute = 60_000;
const threshold = { count: 3, minutes: 10 };

/** Matches at these times, in the order of recording. */
function matchesAt(times: readonly number[], first = 1): CountedMatch[] {
  return times.map((at, index) => ({ at, after: { position: first + index - 1, fingerprint: 7 } }));
}

test('an alert is raised by so many changes within so many minutes, and not by one fewer or one that is too late', () => {
  const raised = (times: number[]) => countMatches(nothingCounted, matchesAt(times), threshold).raised;
  expect(raised([0, minute])).toBeUndefined();
  expect(raised([0, minute, 10 * minute])).toBeUndefined();
  expect(raised([0, minute, 10 * minute - 1])).toMatchObject({ count: 3, from: 0, to: 10 * minute - 1 });
});

test('one change is enough where the threshold is 1 in 1', () => {
  const { raised } = countMatches(nothingCounted, matchesAt([5]), { count: 1, minutes: 1 });
  expect(raised).toEqual({ after: { position: 0, fingerprint: 7 }, count: 1, from: 5, to: 5 });
});

test('the times of the changes decide, in whichever order they were recorded: a source that catches up raises nothing new', () => {
  const hourly = Array.from({ length: 24 }, (_none, hour) => hour * 60 * minute);
  expect(countMatches(nothingCounted, matchesAt(hourly), threshold).raised).toBeUndefined();
  expect(countMatches(nothingCounted, matchesAt(hourly.toReversed()), threshold).raised).toBeUndefined();
  const late = countMatches(
    nothingCounted,
    matchesAt([100 * minute, 5 * minute, 101 * minute, 6 * minute, 4 * minute]),
    threshold,
  );
  expect(late.raised).toMatchObject({ count: 3, from: 4 * minute, to: 6 * minute, after: { position: 1 } });
});

test('the law of the threshold: raised where some window of that length holds so many, in one call or in many', async () => {
  const times = fc.array(fc.nat(40), { maxLength: 30 });
  const limits = fc.record({ count: fc.integer({ min: 1, max: 5 }), minutes: fc.integer({ min: 1, max: 12 }) });
  await checkLaw(fc.record({ times, limit: limits }), { runs: 100 }, async ({ times: all, limit }) => {
    const sorted = all.toSorted((one, other) => one - other);
    const matches = matchesAt(sorted.map((time) => time * minute));
    const isReached = sorted.some((from) => {
      return sorted.filter((time) => time >= from && time < from + limit.minutes).length >= limit.count;
    });
    const atOnce = countMatches(nothingCounted, matches, limit);
    const oneByOne = matches.reduce((state, match) => countMatches(state, [match], limit), nothingCounted);
    expect(oneByOne).toEqual(atOnce);
    expect(atOnce.raised !== undefined).toBe(isReached);
  });
});

test('what is kept is bounded, however many changes match without raising the alert', () => {
  const times = Array.from({ length: 500 }, (_none, index) => index * 60 * minute);
  expect(countMatches(nothingCounted, matchesAt(times), threshold).recent.length).toBeLessThanOrEqual(6);
});

test('a rule sends one e-mail in 10 minutes at most, which counts all changes since the last one; then it starts counting again', () => {
  const now = Date.UTC(2026, 10, 23);
  let state: AlertState = countMatches(nothingCounted, matchesAt([now, now, now]), threshold);
  expect(mailDueAt(state)).toBe(0);
  state = afterMail(state, now);
  expect(mailDueAt(state)).toBeUndefined();
  state = countMatches(state, matchesAt([now + minute, now + minute], 4), threshold);
  expect(mailDueAt(state)).toBeUndefined();
  state = countMatches(state, matchesAt([now + minute, now + 9 * minute, now + 200 * minute], 6), threshold);
  expect(mailDueAt(state)).toBe(now + mailPause);
  expect(state.raised).toEqual({
    after: { position: 3, fingerprint: 7 },
    count: 5,
    from: now + minute,
    to: now + 200 * minute,
  });
});
