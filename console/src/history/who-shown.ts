import { allows, historyAbilities } from '../api/session.ts';
import type { Named } from './who-queries.ts';

/** Whether the session sees the names of actors: a part of the history may show none. */
export function showsActors(entries: readonly Named[] = []): boolean {
  return allows(historyAbilities.all) || entries.some(({ actor }) => actor !== undefined);
}

/** Whether the session sees who exactly made changes: a part of the history shows it in its entries, or not at all. */
export function showsIds(entries: readonly Named[] = []): boolean {
  return (
    allows(historyAbilities.all) ||
    entries.some(({ actorId, onBehalfOf }) => actorId !== undefined || onBehalfOf !== undefined)
  );
}
