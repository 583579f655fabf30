import type { Dictionary } from '../names/dictionary.ts';
import type { Interval, Selection } from '../plan/tally-plan.ts';

/** What entries are told apart by. */
export type Split = 'kind' | 'actor';

/** Entries of one selection in a range of time. The rows have `label`; a caller tells parts apart by it. */
export interface CountedPart {
  readonly label: string;
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
export function partsInRanges(
  intervals: readonly Interval[],
  moments: readonly number[],
  label: string,
): CountedPart[] {
  return intervals.flatMap(({ since, before, selections }) => {
    const begun = moments.findLastIndex((moment) => moment <= since);
    const firstPlace = Math.max(0, begun);
    const first = Math.max(since, moments[0] ?? since);
    const inside = moments.filter((moment) => moment > first && (before === null || moment < before));
    if (before !== null && before <= first) return [];
    return selections.map((selection) => ({ label, selection, moments: [first, ...inside], firstPlace, before }));
  });
}

/** The same parts for some of the kinds only. */
export function ofKinds(parts: readonly CountedPart[], kinds: readonly number[], label: string): CountedPart[] {
  const wanted = new Set(kinds);
  return parts.flatMap((part) => {
    const { selection } = part;
    const both = selection.kinds === null ? kinds : selection.kinds.filter((kind) => wanted.has(kind));
    return both.length === 0 ? [] : [{ ...part, label, selection: { ...selection, kinds: both } }];
  });
}

/** The parts as the parameters of change_count_parts: arrays of their labels, actors, kinds, moments, ends and first places. */
export function columnsOfParts(parts: readonly CountedPart[], dictionary: Dictionary, split?: Split): unknown[] {
  const everyKind = () => dictionary.kinds.map(({ id }) => id);
  const kindsOf = ({ kinds, actors }: Selection) =>
    kinds ?? (split === 'kind' ? everyKind() : actors === null && split === undefined ? [0] : []);
  return [
    parts.map(({ label }) => label),
    parts.map(({ selection }) => textOf(selection.actors ?? [0])),
    parts.map(({ selection }) => textOf(kindsOf(selection))),
    parts.map(({ moments }) => textOf(moments)),
    parts.map(({ before }) => before),
    parts.map(({ firstPlace }) => firstPlace),
  ];
}

function textOf(ids: readonly number[]): string {
  return `{${ids.join(',')}}`;
}
