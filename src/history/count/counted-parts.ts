import type { Dictionary } from '../search/names/dictionary.ts';
import type { Interval, Selection } from '../search/plan/tally-plan.ts';
import type { Split } from '../search/query-parts.ts';

/** Entries of one selection in ranges of time. */
export interface CountedPart {
  readonly split: Split;
  readonly selection: Selection;
  /** The places of these moments in the caller's list begin at `firstPlace`. Each moment begins a range. */
  readonly moments: readonly number[];
  readonly firstPlace: number;
  /** null: the last range has no end. */
  readonly before: number | null;
}

/**
 * The parts of intervals in the ranges that `moments` begin, in ascending order. The last range has no end. No entry of the
 * intervals is before the first moment.
 */
export function partsInRanges(intervals: readonly Interval[], moments: readonly number[], split: Split): CountedPart[] {
  return intervals.flatMap(({ since, before, selections }) => {
    const begun = moments.findLastIndex((moment) => moment <= since);
    const firstPlace = Math.max(0, begun);
    const first = Math.max(since, moments[0] ?? since);
    const inside = moments.filter((moment) => moment > first && (before === null || moment < before));
    if (before !== null && before <= first) return [];
    return selections.map((selection) => ({ split, selection, moments: [first, ...inside], firstPlace, before }));
  });
}

/** The parts as the parameters of change_count_parts: arrays of their splits, actors, kinds, moments, ends and first places. */
export function columnsOfParts(parts: readonly CountedPart[], dictionary: Dictionary): unknown[] {
  const everyKind = () => dictionary.kinds.map(({ id }) => id);
  return [
    parts.map(({ split }) => split),
    parts.map(({ selection }) => textOf(selection.actors ?? [0])),
    parts.map(({ selection, split }) => textOf(selection.kinds ?? (split === 'kind' ? everyKind() : []))),
    parts.map(({ moments }) => textOf(moments)),
    parts.map(({ before }) => before),
    parts.map(({ firstPlace }) => firstPlace),
  ];
}

function textOf(ids: readonly number[]): string {
  return `{${ids.join(',')}}`;
}
