import type { ComponentChildren } from 'preact';
import type { EntryPage } from '../api/history-reads.ts';
import type { Requested } from '../api/requests.ts';
import { counted } from '../components/numbers.ts';
import { FailureBox, LoadingLine, later, Skeleton } from '../components/states.tsx';
import { Pager } from '../components/table.tsx';
import { setParameters } from '../router/router.tsx';
import { EmptyHistory, EntryList } from './entry-list.tsx';

const EntryPanel = later(async () => (await import('./entry-panel.tsx')).EntryPanel);

/** A view of entries, with the detail of one of them beside it. */
export function WithEntry({ entry, children }: { readonly entry: string | undefined; children: ComponentChildren }) {
  return (
    <>
      <div class={`history${entry === undefined ? '' : ' with-panel'}`}>{children}</div>
      {entry === undefined ? undefined : (
        <EntryPanel entry={entry} onClose={() => setParameters({ entry: undefined })} />
      )}
    </>
  );
}

interface EntriesProps {
  readonly list: Requested<EntryPage>;
  readonly error?: unknown;
  readonly page: number;
  readonly q: string;
  /** The ref of the entry whose detail is open. */
  readonly open: string | undefined;
  readonly onQuery: (q: string) => void;
  readonly onPage: (page: number) => void;
  /** Above the entries. */
  readonly children?: ComponentChildren;
}

/** The entries that a query finds, by pages. */
export function Entries({ list, error = list.error, page, q, open, onQuery, onPage, children }: EntriesProps) {
  const { value } = list;
  const total = value?.totalElements ?? 0;
  const turnTo = (next: number) => {
    onPage(next);
    scrollTo({ top: 0 });
  };
  return (
    <section class="card history-entries" aria-label="Entries">
      <LoadingLine active={list.isLoading} />
      <FailureBox error={error} onRetry={list.reload} />
      {children}
      {error !== undefined ? undefined : value === undefined ? (
        <Skeleton lines={12} />
      ) : total === 0 ? (
        <EmptyHistory q={q} onQuery={onQuery} />
      ) : (
        <EntryList entries={value.items} open={open} />
      )}
      {total === 0 ? undefined : (
        <footer class="entries-footer">
          <span class="muted number">{counted(total, 'change')}</span>
          <Pager page={page} pages={value?.totalPages ?? 1} onPage={turnTo} />
          <span class="muted key-hints">
            <kbd>j</kbd> <kbd>k</kbd> move · <kbd>Enter</kbd> opens
          </span>
        </footer>
      )}
    </section>
  );
}
