import { useState } from 'preact/hooks';
import { readEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/use-request.ts';
import { momentText } from '../components/days.ts';
import { FailureBox } from '../components/failure-box.tsx';
import { LoadingLine } from '../components/loading.tsx';
import { counted } from '../components/numbers.ts';
import { EntryList } from '../history/entry-list.tsx';
import { QueryBar } from '../history/query-bar.tsx';
import { queryFaultOf } from '../history/query-faults.ts';
import { joined } from '../query-text/edit-query.ts';

interface QueryCardProps {
  readonly q: string;
  /** What the service said of the query when it refused the subscription. */
  readonly fault: string | undefined;
  readonly onQuery: (q: string) => void;
}

/** Entries that the preview shows. */
const size = 5;

/** The query of a subscription, and what it would have matched. */
export function QueryCard({ q, fault, onQuery }: QueryCardProps) {
  // As it was when the reader asked for the preview.
  const [asked, setAsked] = useState(() => previewOf(q));
  // The entries come with the button, since what stands below them moves.
  const [isOpen, setOpen] = useState(false);
  const { value, error, isLoading, isCurrent, reload } = useRequest(asked.query, (signal) =>
    readEntries({ q: asked.query, page: 1, size }, signal),
  );
  const found = queryFaultOf(error, asked.q);
  const told = found ?? (fault === undefined ? undefined : { message: fault, offset: undefined });
  return (
    <section class="card">
      <h2 class="card-header">Which changes</h2>
      <LoadingLine active={isLoading} />
      <div class="card-body stack">
        <QueryBar
          q={q}
          fault={told}
          action="Preview"
          onText={onQuery}
          onSubmit={(next) => {
            onQuery(next);
            setAsked(previewOf(next));
            setOpen(true);
          }}
        />
        <p class="muted" role="status">
          {value === undefined || !isCurrent ? (
            'Without a query every change is sent.'
          ) : (
            <>
              In the last 24 hours {counted(value.totalElements, 'change')}{' '}
              {asked.q === '' ? 'occurred' : value.totalElements === 1 ? 'matches' : 'match'}
              {asked.q === q ? '.' : ' the query before. Choose Preview to look again.'}
            </>
          )}
        </p>
        {error === undefined || found !== undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      </div>
      {!isOpen || value === undefined || value.items.length === 0 ? undefined : (
        <EntryList entries={value.items} open={undefined} />
      )}
    </section>
  );
}

function previewOf(q: string) {
  return { q, query: joined(q, `occurredAt:>="${momentText(Math.floor(Date.now() / 1_000) * 1_000 - 86_400_000)}"`) };
}
