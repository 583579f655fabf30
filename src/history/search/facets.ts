import { nameOfPath } from '../../recording/path-names.ts';
import { partsInRanges } from '../count/counted-parts.ts';
import { readPathFacets } from '../count/path-facets.ts';
import type { EntryRow, Way } from '../entries/entry-store-new.ts';
import { type FacetField, type FacetValue, readFacetValues } from './count-store.ts';
import { compareCodePoints } from './names/code-points.ts';
import { isUnderestimated } from './planner-estimates.ts';
import { partsOf, wayOf } from './query-parts.ts';
import type { QuerySnapshot } from './snapshots.ts';

/** The values of a field with most entries. */
export interface Facets {
  readonly way: Way;
  readonly field: FacetField;
  readonly total: number;
  readonly values: readonly FacetValue[];
  /** The number of entries with any other value; of paths, the number of the other paths. */
  readonly others: number;
}

/** Counts the entries of a query by the values of a field, and takes the `size` values with most entries. */
export async function readFacets(snapshot: QuerySnapshot, asked: { field: FacetField; size: number }): Promise<Facets> {
  if (asked.field === 'path') return await readFacetsOfPaths(snapshot, asked.size);
  const split = asked.field === 'actor' ? 'actor' : 'kind';
  const parts = await partsOf(snapshot, { split, ranges: 1 });
  const counted = partsInRanges(parts.intervals, [snapshot.since], split);
  const { total, values } = await readFacetValues(snapshot, { parts: counted, search: parts.search }, asked);
  const others = values.reduce((left, { count }) => left - count, total);
  return { way: wayOf(parts), field: asked.field, total, values, others };
}

/** Counts the entries that are all of a query. */
export function countValues(
  entries: readonly EntryRow[],
  { field, size }: { field: FacetField; size: number },
): Facets {
  const valuesOf = (entry: EntryRow) => (field === 'path' ? pathsOf(entry) : [entry[field] ?? '']);
  const counts = new Map<string, number>();
  for (const value of entries.flatMap(valuesOf)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const counted = [...counts].map(([value, count]) => ({ value, count }));
  counted.sort((one, other) => other.count - one.count || compareCodePoints(one.value, other.value));
  const left = counted.slice(size);
  const others = field === 'path' ? left.length : left.reduce((sum, { count }) => sum + count, 0);
  return { way: 'search', field, total: entries.length, values: counted.slice(0, size), others };
}

/** The names of the paths of an entry, each once. */
function pathsOf({ paths }: EntryRow): string[] {
  return [...new Set(Object.keys(JSON.parse(paths)).map(nameOfPath))];
}

/** No tally knows paths, so the entries are read, as their table or an index has them. */
async function readFacetsOfPaths(snapshot: QuerySnapshot, size: number): Promise<Facets> {
  const { search, intervals, everything, scanned } = await partsOf(snapshot);
  const way = scanned === undefined && search !== undefined ? 'search' : 'scan';
  const read = search !== undefined && intervals.length === 0 ? search : everything;
  // The names of the paths are joined to what the search finds.
  const underestimated = await isUnderestimated(snapshot.transaction, snapshot.tenant);
  return { way, field: 'path', ...(await readPathFacets(snapshot, { ...read, underestimated }, size)) };
}
