import type { Entry } from '../api/history-reads.ts';
import { PathChanges } from '../compare/path-changes.tsx';
import { itemsOf } from '../components/lazy-list.tsx';

/** Every path of an entry with what it was and what it became. */
export function EntryChanges({ entry: { paths } }: { readonly entry: Entry }) {
  if (paths.size === 0)
    return <p class="muted">This change has no fields: an empty document was created or deleted.</p>;
  return <PathChanges paths={itemsOf(paths)} />;
}
