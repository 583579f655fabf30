import { afterEach, expect, test, vi } from 'vitest';
import { minExportSlice, RunningExport, yieldPlaces } from '../../../src/desk/jobs/dispatcher.ts';

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
  expect(minExportSlice).toBe(500);
  const { exports, setClock } = exportsAndClock(2);
  setClock(499);
  yieldPlaces(exports, 2);
  expect(overOf(exports)).toEqual([false, false]);
  setClock(500);
  yieldPlaces(exports, 2);
  expect(overOf(exports)).toEqual([true, false]);
});

test('as many make way as are needed, the oldest first, and those that are ending count', () => {
  const { exports, setClock } = exportsAndClock(4);
  setClock(1_000);
  yieldPlaces(exports, 0);
  yieldPlaces(exports, -3);
  expect(overOf(exports)).toEqual([false, false, false, false]);
  yieldPlaces(exports, 1);
  yieldPlaces(exports, 1);
  expect(overOf(exports)).toEqual([true, false, false, false]);
  yieldPlaces(exports, 3);
  expect(overOf(exports)).toEqual([true, true, true, false]);
});
