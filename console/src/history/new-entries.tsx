import { useEffect, useState } from 'preact/hooks';
import { countEntries, type EntryPage } from '../api/history-reads.ts';
import { counted } from '../components/numbers.ts';
import { joined } from '../query-text/edit-query.ts';

interface NewEntriesProps {
  readonly q: string;
  /** The page that is shown. */
  readonly shown: EntryPage;
  /** The newest time of the first page. */
  readonly newest: string;
  readonly onShow: () => void;
}

/** Milliseconds between two looks. A tab that nobody sees does not look. */
const pause = 10_000;

/** Says how many matching entries are newer than those that are shown. Nothing moves before the reader asks for them. */
export function NewEntries({ q, shown, newest, onShow }: NewEntriesProps) {
  const [count, setCount] = useState(0);
  useEffect(() => {
    setCount(0);
    const controller = new AbortController();
    const known = shown.page === 1 ? shown.items.filter(({ at }) => at === newest).length : undefined;
    const newer = joined(q, known === undefined ? `occurredAt:>"${newest}"` : `occurredAt:>="${newest}"`);
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return;
      countEntries(newer, controller.signal).then(
        (found) => setCount(Math.max(0, found - (known ?? 0))),
        // The next look may succeed. The entries that are shown are still correct.
        () => {},
      );
    }, pause);
    return () => {
      clearInterval(timer);
      controller.abort();
    };
  }, [q, shown, newest]);
  return (
    <div class="new-entries" role="status">
      {count === 0 ? undefined : (
        <button type="button" onClick={onShow}>
          {counted(count, 'new change')}
        </button>
      )}
    </div>
  );
}
