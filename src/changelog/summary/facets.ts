import { partsOf } from '../read/query-parts.ts';
import type { QuerySnapshot } from '../read/query-snapshot.ts';
import { cheaperParts, defaultCosts, keysOf, talliesByType } from './counting-costs.ts';
import { countTallied, estimateEntries, type FacetField, type FacetValue, readFacetValues } from './summary-store.ts';
import { areOfActors, byTypes, partsInRanges } from './tally-counts.ts';
import { rangeOfActors, readTopActors } from './top-actors.ts';
import { talliedTypes } from './types-of-selection.ts';

/** The values of a field with most entries. */
export interface Facets {
  readonly field: FacetField;
  readonly total: number;
  readonly values: readonly FacetValue[];
  /** The number of entries with any other value. */
  readonly others: number;
}

/** Counts the entries of a query by the values of a field, and takes the `size` values with most entries. */
export async function readFacets(
  snapshot: QuerySnapshot,
  asked: { field: FacetField; size: number },
  costs = defaultCosts,
): Promise<Facets> {
  const ofTypes = asked.field === 'type';
  const found = await partsOf(
    snapshot,
    ofTypes ? (selection) => talliesByType(selection, snapshot.dictionary) : undefined,
  );
  const types = ofTypes ? await talliedTypes(snapshot, found) : undefined;
  const ofActors = types !== undefined && areOfActors(found, types);
  const matches = ofActors ? await estimateEntries(snapshot, found) : await countTallied(snapshot, found);
  const range = asked.field === 'actor' ? rangeOfActors(found) : undefined;
  if (range !== undefined) {
    const keys = (range.actors ?? snapshot.dictionary.actors).length * costs.bound;
    if (keys <= matches * costs.entry) {
      const values = await readTopActors(snapshot, range, asked.size);
      return { field: asked.field, total: matches, values, others: othersOf(matches, values) };
    }
  }
  const split = asked.field === 'actor' ? 'actor' : 'kind';
  const keys = keysOf(found, split, snapshot.dictionary, types) * costs.key;
  const { intervals, search } = cheaperParts(found, { keys, entries: matches * costs.entry });
  const inRange = partsInRanges(intervals, [snapshot.since], split);
  const parts = types === undefined ? inRange : byTypes(inRange, snapshot.dictionary, types);
  const { total, values } = await readFacetValues(snapshot, { parts, search }, asked);
  return { field: asked.field, total, values, others: othersOf(total, values) };
}

function othersOf(total: number, values: readonly FacetValue[]): number {
  return values.reduce((left, { count }) => left - count, total);
}
