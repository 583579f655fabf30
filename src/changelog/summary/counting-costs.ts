import type { Dictionary } from '../names/dictionary.ts';
import type { QueryParts } from '../read/query-parts.ts';
import type { Search } from '../read/search-store.ts';
import type { Split } from './tally-counts.ts';
import { typesOfSelection } from './types-of-selection.ts';

/** In nanoseconds, measured with 600,000 entries. */
interface CountingCosts {
  /** To count a key by its tallies at both ends of an interval. */
  readonly key: number;
  /** To find out between which bounds an actor's entries are, for the actors with most entries. */
  readonly bound: number;
  /** To count a key in one more range of time. */
  readonly range: number;
  /** To read an entry. */
  readonly entry: number;
}

export const defaultCosts: CountingCosts = { key: 60_000, bound: 6_000, range: 1_600, entry: 500 };

/** How many tallies tell apart the values of the part that tallies can count. With the split `type`: tallies by type where they suffice. */
export function keysOf({ intervals }: QueryParts, split: Split, dictionary: Dictionary): number {
  const every = { actors: dictionary.actors.length, kinds: dictionary.kinds.length };
  return intervals
    .flatMap(({ selections }) => selections)
    .reduce((sum, selection) => {
      const { actors, kinds } = selection;
      const types = split === 'type' ? typesOfSelection(selection, dictionary) : undefined;
      if (types !== undefined) return sum + 1 + types.length;
      if (split !== 'actor') return sum + (actors?.length ?? 1) * (kinds?.length ?? every.kinds);
      return sum + (actors?.length ?? every.actors) * (1 + (kinds?.length ?? 0));
    }, 0);
}

/** The parts as they are, or one search for all entries if it costs less than the tallies. */
export function cheaperParts(
  parts: QueryParts,
  { keys, entries }: { keys: number; entries: number },
): { intervals: QueryParts['intervals']; search: Search | undefined } {
  return keys <= entries ? parts : { intervals: [], search: parts.everything };
}
