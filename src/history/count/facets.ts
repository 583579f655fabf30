import type { Selection } from '../ask/tally-plan.ts';
import { partsOf, type QueryParts } from '../page/query-parts.ts';
import type { QuerySnapshot } from '../page/query-snapshot.ts';
import { cheaperParts, defaultCosts, keysOf, talliesByType } from './counting-costs.ts';
import {
  countParts,
  countTallied,
  estimateEntries,
  type FacetField,
  type FacetValue,
  readFacetValues,
} from './summary-store.ts';
import { areOfActors, byTypes, partsInRanges } from './tally-counts.ts';
import { rangeOfActors, readTopActors } from './top-actors.ts';
import { costOfTopEntities, rangeOfSelection, readTopEntities } from './top-entities.ts';
import { type TalliedTypes, talliedTypes, typesOfSelection } from './types-of-selection.ts';

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
  const { dictionary } = snapshot;
  const ofTypes = asked.field === 'type';
  const found = await partsOf(
    snapshot,
    asked.field === 'actor' ? undefined : (selection) => talliesByType(selection, dictionary),
  );
  const types = ofTypes ? await talliedTypes(snapshot, found) : undefined;
  const wholeTypes = types ?? ((selection: Selection) => typesOfSelection(selection, dictionary));
  const ofActors = asked.field !== 'actor' && areOfActors(found, wholeTypes);
  const matches = await matchesOf(snapshot, found, { ofTypes, wholeTypes: ofActors ? wholeTypes : undefined });
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
  const selected = asked.field === 'entity' ? rangeOfSelection(found) : undefined;
  if (selected !== undefined && (ofActors || selected.actors === null)) {
    const cost = costOfTopEntities(snapshot, selected, asked.size, costs);
    if (cost <= Math.min(keys, matches * costs.entry)) {
      const values = await readTopEntities(snapshot, selected, asked.size);
      return { field: asked.field, total: matches, values, others: othersOf(matches, values) };
    }
  }
  const { intervals, search } = cheaperParts(found, { keys, entries: matches * costs.entry });
  const inRange = partsInRanges(intervals, [snapshot.since], split);
  const parts = types === undefined ? inRange : byTypes(inRange, snapshot.dictionary, types);
  const { total, values } = await readFacetValues(snapshot, { parts, search }, asked);
  return { field: asked.field, total, values, others: othersOf(total, values) };
}

/**
 * The number of entries that the tallies count; for the field `type` only an estimate. Where the query consists of actors and
 * whole types, Annals reads it from tallies by type: of tallies by kind there may be a thousand for each actor.
 */
async function matchesOf(
  snapshot: QuerySnapshot,
  found: QueryParts,
  { ofTypes, wholeTypes }: { ofTypes: boolean; wholeTypes: TalliedTypes | undefined },
): Promise<number> {
  if (wholeTypes !== undefined && ofTypes) return await estimateEntries(snapshot, found);
  const selections = found.intervals.flatMap((interval) => interval.selections);
  if (wholeTypes === undefined || selections.every(({ kinds }) => kinds === null)) {
    return await countTallied(snapshot, found);
  }
  const parts = partsInRanges(found.intervals, [snapshot.since], 'kind');
  const counts = await countParts(snapshot, byTypes(parts, snapshot.dictionary, wholeTypes));
  return counts.reduce((sum, { entries }) => sum + entries, 0);
}

function othersOf(total: number, values: readonly FacetValue[]): number {
  return values.reduce((left, { count }) => left - count, total);
}
