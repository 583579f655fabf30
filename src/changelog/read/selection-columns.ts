import type { Interval } from '../plan/tally-plan.ts';

/**
 * The arrays that change_read takes, as texts: the selections of all intervals in one list, their numbers as texts of arrays. The
 * driver would take longer to make the texts, because it does not know that all of this is numbers.
 */
export function intervalColumns(intervals: readonly Interval[]): string[] {
  const selections = intervals.flatMap((interval) => interval.selections);
  let ended = 0;
  return [
    textOf(intervals.map((interval) => interval.since)),
    textOf(intervals.map((interval) => interval.before ?? 'null')),
    textOf(intervals.map((interval) => (ended += interval.selections.length))),
    textOf(selections.map(({ actors }) => quoted(actors ?? [0]))),
    textOf(selections.map(({ actors, kinds }) => quoted(kinds ?? (actors === null ? [0] : [])))),
  ];
}

/** The text of an array. */
function textOf(elements: readonly (number | string)[]): string {
  return `{${elements.join(',')}}`;
}

/** The text of an array as an element of another one. */
function quoted(ids: readonly number[]): string {
  return `"${textOf(ids)}"`;
}
