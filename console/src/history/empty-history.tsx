import { countEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/use-request.ts';
import { Button } from '../components/button.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { counted } from '../components/numbers.ts';
import { hasFromBound, withTime } from '../query-text/edit-query.ts';
import { allTime } from './time-choices.ts';

interface EmptyHistoryProps {
  readonly q: string;
  readonly onQuery: (q: string) => void;
}

/** Says why nothing matches, and leads to where something does. */
export function EmptyHistory({ q, onQuery }: EmptyHistoryProps) {
  const everything = withTime(q, { from: allTime });
  const { value: older } = useRequest(everything, (signal) => countEntries(everything, signal));
  const bounded = hasFromBound(q);
  return (
    <EmptyState icon="history" title="No changes match">
      <p>
        {bounded
          ? 'Nothing in this time matches the query.'
          : 'A query without a beginning looks at the last 30 days. Nothing in them matches.'}
        {older === 0 ? ' Nothing older or newer matches either. Names are compared with upper and lower case.' : ''}
      </p>
      {older !== undefined && older > 0 ? (
        <Button kind="primary" onClick={() => onQuery(everything)}>
          Show {counted(older, 'change')} of all time
        </Button>
      ) : undefined}
      {q === '' ? undefined : <Button onClick={() => onQuery('')}>Clear the query</Button>}
    </EmptyState>
  );
}
