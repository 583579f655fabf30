import { afterEach, expect, test, vi } from 'vitest';
import { makeWay, minExportTurn, RunningExport } from '../../../src/desk/jobs/dispatcher.ts';

afterEach(() => vi.restoreAllMocks());

/** Exports that began one millisecond after another, and the clock that they look at. */
function exportsAndClock(count: number): { exports: RunningExport[]; setClock: (milliseconds: number) => void } {
  let clock = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  const exports = Array.from({ length: count }, (_, number) => {
    clock = number;
    return new RunningExport();
  });
  return {
    exports,
    setClock(milliseconds) {
      clock = milliseconds;
    },
  };
}

const overOf = (exports: readonly RunningExport[]) => exports.map(({ turn }) => turn.aborted);

test('an export makes way after 500 ms and not before', () => {
  expect(minExportTurn).toBe(500);
  const { exports, setClock } = exportsAndClock(2);
  setClock(499);
  makeWay(exports, 2);
  expect(overOf(exports)).toEqual([false, false]);
  setClock(500);
  makeWay(exports, 2);
  expect(overOf(exports)).toEqual([true, false]);
});

test('as many make way as are wanted, the first ones first, and those that are ending count', () => {
  const { exports, setClock } = exportsAndClock(4);
  setClock(1_000);
  makeWay(exports, 0);
  makeWay(exports, -3);
  expect(overOf(exports)).toEqual([false, false, false, false]);
  makeWay(exports, 1);
  makeWay(exports, 1);
  expect(overOf(exports)).toEqual([true, false, false, false]);
  makeWay(exports, 3);
  expect(overOf(exports)).toEqual([true, true, true, false]);
});
