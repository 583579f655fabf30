import { readFacetValues } from '../search/count-store.ts';
import { findVisible } from '../search/names/name-store.ts';
import type { FindVisible, NameField } from '../search/names/search-names.ts';
import { type HistorySnapshot, kindsShown } from '../search/snapshots.ts';
import type { CountedPart } from './counted-parts.ts';

/** Finds the actors, or the kinds, that still have an entry that the caller sees. */
export function findVisibleNames(snapshot: HistorySnapshot, tenant: string, field: NameField): FindVisible {
  const { transaction, dictionary, horizon: since } = snapshot;
  const shown = kindsShown(snapshot, undefined);
  if (field !== 'actor' || shown === undefined) {
    const of = field === 'actor' ? 'actor' : 'kind';
    return (ids) => findVisible(transaction, tenant, of, { ids, since });
  }
  // No index has the entries of an actor by their kinds, but the tallies have.
  const kinds = shown.map(({ id }) => id);
  return async (actors) => {
    if (actors.length === 0 || kinds.length === 0) return new Set();
    const selection = { actors, kinds };
    const part: CountedPart = { split: 'actor', selection, moments: [since], firstPlace: 0, before: null };
    const counted = { parts: [part], search: undefined };
    const asked = { field: 'actor', size: actors.length } as const;
    const { values } = await readFacetValues({ transaction, tenant, dictionary }, counted, asked);
    const names = new Set(values.map(({ value }) => value));
    return new Set(actors.filter((id) => names.has(dictionary.actorOf.get(id)?.name ?? '')));
  };
}
