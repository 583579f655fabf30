import type { DeliveryAttempt } from '@annals/client';
import { annals } from '../api/annals.ts';
import { useReloads } from '../api/requests.ts';
import { countText } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { FilterChips, ListCard, useList } from '../lists/list-page.tsx';
import { OutcomeBadge } from './subscription-state.tsx';

const none = <span class="muted">none</span>;

/** The attempts of the last 7 days, and what the target answered. */
export function AttemptsList({ id }: { readonly id: string }) {
  const list = useList({
    name: `attempts ${id}`,
    pageSize: 20,
    defaultSort: '_id:DESC',
    read: (parameters, signal) => annals().subscriptions.attempts(id, parameters, { signal }),
  });
  useReloads({ isLoading: list.page.isLoading, reload: list.reload });
  return (
    <section class="stack" aria-label="Attempts">
      <div class="subscription-notes">
        <h2>Attempts</h2>
        <FilterChips
          list={list}
          chips={[
            ['Failed', 'outcome:(failed, refused, suspended)'],
            ['Tests', 'kind:test'],
          ]}
        />
      </div>
      <ListCard
        list={list}
        noun="attempt"
        empty={{
          icon: 'send',
          title: 'Nothing was sent in the last 7 days',
          text: 'Choose Test to send a sample that is marked as one.',
        }}
        class="wraps"
        keyOf={(attempt) => attempt.id ?? ''}
        columns={[
          { label: 'Time', class: 'nowrap', cell: ({ at = '' }) => <Time at={at} /> },
          { label: 'Outcome', cell: ({ outcome = 'failed' }) => <OutcomeBadge outcome={outcome} /> },
          { label: 'Changes', class: 'number nowrap', cell: sentIn },
          { label: 'Status', name: 'status', class: 'number', cell: ({ status }) => status ?? none },
          {
            label: 'Took',
            name: 'took',
            class: 'number nowrap',
            cell: ({ duration }) =>
              duration === undefined ? <span class="muted">unknown</span> : `${countText(duration)} ms`,
          },
          { label: 'Answer', cell: (attempt) => <AttemptAnswer attempt={attempt} /> },
        ]}
      />
    </section>
  );
}

function AttemptAnswer({ attempt: { error, answer = '' } }: { readonly attempt: DeliveryAttempt }) {
  return (
    <>
      {error === undefined ? undefined : <Name text={error} />}{' '}
      {answer === '' ? undefined : <Name as="code" class="muted" text={answer} />}
    </>
  );
}

function sentIn({ kind, first, last }: DeliveryAttempt): string {
  const which =
    first === undefined ? '' : first === last ? countText(first) : `${countText(first)} – ${countText(last ?? first)}`;
  return kind === 'live' ? which : `${kind} ${which}`.trim();
}
