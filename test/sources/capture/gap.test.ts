import { expect, test } from 'vitest';
import { gapBetween, ResumeCheck } from '../../../src/sources/capture/gap.ts';
import type { Position } from '../../../src/sources/capture/position.ts';

const position: Position = {
  systemIdentifier: '7',
  timeline: 1,
  slot: 'annals',
  phase: 'recording',
  commitLsn: 1000n,
  endLsn: 1100n,
  xid: 50,
  committedAt: 9_000_000n,
  changes: 3,
  complete: false,
  lastAt: 9000,
};
const same = { commitLsn: 1000n, xid: 50, committedAt: 9_000_000n };
const gap = { gap: expect.stringContaining('does not have the transaction at 0/3E8') };

test('the transaction that was recorded last continues after what is recorded of it, and what follows is new', () => {
  const check = new ResumeCheck(position, 900n);
  expect(check.recordedOf({ ...same, commitLsn: 999n })).toBe('all');
  expect(check.recordedOf(same)).toBe(3);
  expect(check.recordedOf({ ...same, commitLsn: 1001n })).toBe(0);
  expect(new ResumeCheck({ ...position, complete: true }, 900n).recordedOf(same)).toBe('all');
});

test.each([
  ['another number', { ...same, xid: 51 }],
  ['another time', { ...same, committedAt: 9_000_001n }],
])('a transaction at its place with %s is of another history', (_what, begin) => {
  expect(new ResumeCheck(position, 900n).recordedOf(begin)).toEqual(gap);
});

test('a later transaction is of another history where the recorded one did not come, unless the slot begins behind it', () => {
  const later = { ...same, commitLsn: 1200n };
  expect(new ResumeCheck(position, 900n).recordedOf(later)).toEqual(gap);
  expect(new ResumeCheck({ ...position, complete: true }, 1100n).recordedOf(later)).toBe(0);
});

const system = { identifier: '7', timeline: 1, end: 1000n };
const slot = {
  database: 'shop',
  plugin: 'pgoutput',
  activePid: null,
  confirmedFlush: 1000n,
  keptBytes: 0,
  safeBytes: undefined,
  walStatus: 'reserved',
};

test.each([
  ['all that was recorded, and no more', {}, undefined],
  ['a later timeline', { system: { ...system, timeline: 2 } }, undefined],
  ['an earlier timeline', { system: { ...system, timeline: 0 } }, 'the source is on timeline 0'],
  ['a byte less of its log', { system: { ...system, end: 999n } }, "the source's log ends at 0/3E7"],
  ['a slot that begins earlier', { slot: { ...slot, confirmedFlush: 999n } }, undefined],
  ['a slot that begins a byte later', { slot: { ...slot, confirmedFlush: 1001n } }, 'begins at 0/3E9'],
] as const)('a source with %s', (_what, state, fault) => {
  const found = gapBetween(position, { system, slot, publication: 'whole', ...state });
  if (fault === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(fault);
});
