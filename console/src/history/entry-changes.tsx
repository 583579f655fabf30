import type { Entry } from '../api/history-reads.ts';
import { PathChanges } from '../compare/path-changes.tsx';
import { itemsOf } from '../components/lazy-list.tsx';
import { FieldLinks } from './field-links.tsx';

/** Paths up to which what one may look for stands there at once. */
const maxOpen = 3;

/** Every path of an entry with what it was and what it became, and what one may ask about it next. */
export function EntryChanges({ entry: { entity, entityId, paths } }: { readonly entry: Entry }) {
  if (paths.size === 0)
    return <p class="muted">This change has no fields: an empty document was created or deleted.</p>;
  return (
    <PathChanges
      paths={itemsOf(paths)}
      below={(path, change) => (
        <FieldLinks field={{ entity, entityId, path }} change={change} open={paths.size <= maxOpen} />
      )}
    />
  );
}
