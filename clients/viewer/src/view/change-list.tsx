import { useEffect, useState } from 'preact/hooks';
import type { Change, ViewerReads } from '../reads/viewer-reads.ts';
import type { DocumentId } from '../search/search.ts';
import { ChangeItem } from './change-item.tsx';
import { useLanguage } from './language-context.ts';

interface ChangeListProps {
  readonly changes: readonly Change[];
  readonly reads: ViewerReads | undefined;
  readonly onOpen: ((document: DocumentId) => void) | undefined;
}

/** Changes that are drawn first, about as many as a phone shows: the others come a moment later. */
const firstDrawn = 5;

/** Changes by day, newest first. */
export function ChangeList({ changes, reads, onOpen }: ChangeListProps) {
  const language = useLanguage();
  const now = Date.now();
  const [isWhole, setWhole] = useState(false);
  useEffect(() => setWhole(true), []);
  const days = Map.groupBy(isWhole ? changes : changes.slice(0, firstDrawn), ({ at }) =>
    language.dayOf(Date.parse(at)),
  );
  return (
    <div class="days-list" part="list">
      {[...days].map(([day, ofDay]) => {
        const title = language.dayTitle(Date.parse(ofDay[0]?.at ?? ''), now);
        return (
          <section key={day} class="day" part="day" aria-label={title}>
            <h3 class="day-title" part="day-title">
              {title}
            </h3>
            <ol class="changes">
              {ofDay.map((change) => (
                <ChangeItem key={change.ref} change={change} reads={reads} onOpen={onOpen} />
              ))}
            </ol>
          </section>
        );
      })}
    </div>
  );
}
