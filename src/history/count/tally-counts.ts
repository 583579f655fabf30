import type { Interval, Selection } from '../ask/tally-plan.ts';
import type { Dictionary } from '../names/dictionary.ts';
import type { QueryParts } from '../page/query-parts.ts';
import type { TalliedTypes } from './types-of-selection.ts';

/** What entries are told apart by. */
export type Split = 'kind' | 'actor' | 'type';

/** Entries of one selection in a range of time. */
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
export function partsInRanges(
  intervals: readonly Interval[],
  moments: readonly number[],
  split: 'kind' | 'actor',
): CountedPart[] {
  return intervals.flatMap(({ since, before, selections }) => {
    const begun = moments.findLastIndex((moment) => moment <= since);
    const firstPlace = Math.max(0, begun);
    const first = Math.max(since, moments[0] ?? since);
    const inside = moments.filter((moment) => moment > first && (before === null || moment < before));
    if (before !== null && before <= first) return [];
    return selections.map((selection) => ({ split, selection, moments: [first, ...inside], firstPlace, before }));
  });
}

/**
 * The same parts. Those that tallies by type count are told apart by type, with the numbers of types as their kinds. Those
 * of actors have these numbers beside their kinds: in a cell with few kinds, an actor has no tallies by type.
 */
export function byTypes(
  parts: readonly CountedPart[],
  dictionary: Dictionary,
  talliedTypes: TalliedTypes,
): CountedPart[] {
  return parts.map((part) => {
    const types = talliedTypes(part.selection);
    if (types === undefined) return part;
    const { actors, kinds } = part.selection;
    if (actors === null) return { ...part, selection: { actors, kinds: types }, split: 'type' };
    return { ...part, selection: { actors, kinds: [...types, ...(kinds ?? dictionary.kinds.map(({ id }) => id))] } };
  });
}

/**
 * Whether change_counts decides for itself, actor by actor, between tallies and entries: then nobody has to count all matches
 * before. It does so where a query selects actors, and whole types or nothing else.
 */
export function areOfActors(
  { intervals, search }: Pick<QueryParts, 'intervals' | 'search'>,
  talliedTypes: TalliedTypes,
): boolean {
  const selections = intervals.flatMap((interval) => interval.selections);
  return (
    search === undefined &&
    selections.every((selection) => selection.actors !== null && talliedTypes(selection) !== undefined)
  );
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
