import type { Interval } from '../plan/tally-plan.ts';

/** The arrays that change_read takes: the selections of all intervals in one list, their numbers as texts of arrays. */
export function intervalColumns(intervals: readonly Interval[]): unknown[] {
  const selections = intervals.flatMap((interval) => interval.selections);
  let ended = 0;
  return [
    intervals.map((interval) => interval.since),
    intervals.map((interval) => interval.before),
    intervals.map((interval) => (ended += interval.selections.length)),
    selections.map(({ actors }) => textOf(actors ?? [0])),
    selections.map(({ actors, kinds }) => textOf(kinds ?? (actors === null ? [0] : []))),
  ];
}

function textOf(ids: readonly number[]): string {
  return `{${ids.join(',')}}`;
}
