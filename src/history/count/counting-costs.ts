import { keysOf as keysOfSelection, type Selection } from '../ask/tally-plan.ts';
import type { Dictionary } from '../names/dictionary.ts';
import type { QueryParts } from '../page/query-parts.ts';
import type { Search } from '../page/search-store.ts';
import { type TalliedTypes, typesOfSelection } from './types-of-selection.ts';

/** In nanoseconds, measured with 600,000 entries. */
export interface CountingCosts {
  /** To count a key by its tallies at both ends of an interval. */
  readonly key: number;
  /** To find out between which bounds an actor's entries are, for the actors with most entries. */
  readonly bound: number;
  /** To find out how many entries a kind has at most, for the entity types with most entries. */
  readonly candidate: number;
  /** To read a tally of some kind and actor where all of a level are read at once, with those of the finer levels. */
  readonly tally: number;
  /** To count a key in one more range of time. */
  readonly range: number;
  /** To read an entry. */
  readonly entry: number;
}

export const defaultCosts: CountingCosts = {
  key: 60_000,
  bound: 6_000,
  candidate: 8_000,
  tally: 2_000,
  range: 1_600,
  entry: 500,
};

/** An actor has tallies by type in the cells in which it has so many kinds. See change_many_kinds. */
const manyKinds = 8;

/** How many tallies tell apart the values of the part that tallies can count. With `talliedTypes`: by type where they suffice. */
export function keysOf(
  { intervals }: QueryParts,
  split: 'kind' | 'actor',
  dictionary: Dictionary,
  talliedTypes?: TalliedTypes,
): number {
  const every = { actors: dictionary.actors.length, kinds: dictionary.kinds.length };
  return intervals
    .flatMap(({ selections }) => selections)
    .reduce((sum, selection) => {
      const { actors, kinds } = selection;
      const types = talliedTypes?.(selection);
      if (types !== undefined && actors === null) return sum + 1 + types.length;
      if (split === 'actor') return sum + (actors?.length ?? every.actors) * (1 + (kinds?.length ?? 0));
      const ofActor = kinds?.length ?? every.kinds;
      return sum + (actors?.length ?? 1) * (types === undefined || ofActor < manyKinds ? ofActor : 1 + types.length);
    }, 0);
}

/**
 * How many tallies tell at a moment how many entries of a selection there are, where those by type may stand for those by
 * kind. An actor without them in a cell has few kinds there, unless an earlier version has folded it.
 */
export function talliesByType(selection: Selection, dictionary: Dictionary): number {
  const { actors, kinds } = selection;
  if (actors === null || kinds === null || typesOfSelection(selection, dictionary) === undefined) {
    return keysOfSelection(selection);
  }
  return actors.length * (1 + Math.min(kinds.length, manyKinds));
}

/** The parts as they are, or one search for all entries if it costs less than the tallies. */
export function cheaperParts(
  parts: QueryParts,
  { keys, entries }: { keys: number; entries: number },
): { intervals: QueryParts['intervals']; search: Search | undefined } {
  return keys <= entries ? parts : { intervals: [], search: parts.everything };
}
