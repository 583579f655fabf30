import type { Interval, Selection } from '../plan/tally-plan.ts';

/** A selection as the functions of the database want it, as texts of arrays: of its actors, kinds and tallied kinds. */
export interface SelectionTexts {
  actors: string;
  kinds: string;
  tallied: string;
}

export function selectionTexts({ actors, kinds }: Selection): SelectionTexts {
  const some = kinds ?? (actors === null ? [0] : []);
  return { actors: textOf(actors ?? [0]), kinds: textOf(some), tallied: textOf(actors === null ? some : [0, ...some]) };
}

/** The arrays that change_page wants: the selections of all intervals in one list. */
export function intervalColumns(intervals: readonly Interval[]): unknown[] {
  const texts = intervals.flatMap((interval) => interval.selections.map(selectionTexts));
  let ended = 0;
  return [
    intervals.map((interval) => interval.since),
    intervals.map((interval) => interval.before),
    intervals.map((interval) => (ended += interval.selections.length)),
    texts.map(({ actors }) => actors),
    texts.map(({ kinds }) => kinds),
  ];
}

function textOf(ids: readonly number[]): string {
  return `{${ids.join(',')}}`;
}
