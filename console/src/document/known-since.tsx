import type { DocumentState } from '../api/history-reads.ts';
import { Icon } from '../components/icon.tsx';
import { Time } from '../components/time.tsx';
import type { DocumentLife } from './read-life.ts';

/** Where the whole document is not known, says since when it is recorded. */
export function KnownSince({ state, life }: { readonly state: DocumentState; readonly life: DocumentLife }) {
  if (state.complete) return null;
  const oldest = life.changes.at(-1);
  return (
    <p class="known-since">
      <Icon name="warning" />
      <span>
        {oldest === undefined || life.changes.length < life.total ? (
          'Not all of this document is known.'
        ) : (
          <>
            Known since <Time at={oldest.entry.at} />. Not every part of the document was recorded, so some may be
            missing.
          </>
        )}
      </span>
    </p>
  );
}
