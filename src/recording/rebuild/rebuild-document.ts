import { DocumentRebuild, type RebuiltDocument } from './document-rebuild.ts';
import { isAnchor, type RebuildEntry } from './entry-changes.ts';

/** How many entries after the moment are looked at for values from before it. */
export const maxLaterEntries = 1_000;

/**
 * Rebuilds a document as it was at a moment (contract 4). `until` has its entries up to that moment, oldest first, at least from the
 * newest anchor on, or all where there is no anchor. `later` has those after it, oldest first; only where `until` has no anchor they
 * matter, and of them the first `maxLaterEntries`. Throws where an entry is no JSON.
 *
 * @example
 * rebuildDocument([{ type: 'create', paths: '{"a":{"after":1.10}}', marks: null, isMarked: true }], []).document; // '{"a":1.10}'
 */
export function rebuildDocument(until: readonly RebuildEntry[], later: readonly RebuildEntry[]): RebuiltDocument {
  const rebuild = new DocumentRebuild();
  for (const entry of until.slice(Math.max(0, until.findLastIndex(isAnchor)))) rebuild.add(entry);
  for (const entry of later.slice(0, maxLaterEntries)) if (!rebuild.addLater(entry)) break;
  return rebuild.result;
}
