import type { DeliveryAttempt } from '@annals/client';
import { annals } from '../api/annals.ts';
import { countText } from '../components/numbers.ts';
import { EmptyState } from '../components/states.tsx';
import { Name, Time } from '../components/values.tsx';
import { FilterChip, ListCard } from '../lists/list-page.tsx';
import { useList } from '../lists/use-list.ts';
import { OutcomeBadge, useReloads } from './subscription-state.tsx';

/** What was tried in the last 7 days, and what the target answered. */
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
        <FilterChip
          label="Failed"
          term="outcome:(failed, refused, suspended)"
          filter={list.filter}
          onFilter={list.setFilter}
        />
        <FilterChip label="Tests" term="kind:test" filter={list.filter} onFilter={list.setFilter} />
      </div>
      <ListCard
        list={list}
        one="attempt"
        empty={
          <EmptyState icon="send" title="Nothing was sent in the last 7 days">
            <p>Choose Test to send a sample that says so.</p>
          </EmptyState>
        }
      >
        {(attempts) => (
          <table class="table wraps">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Outcome</th>
                <th scope="col">Changes</th>
                <th scope="col">Status</th>
                <th scope="col">Took</th>
                <th scope="col">Answer</th>
              </tr>
            </thead>
            <tbody>
              {attempts.map((attempt) => (
                <Row key={attempt.id} attempt={attempt} />
              ))}
            </tbody>
          </table>
        )}
      </ListCard>
    </section>
  );
}

function Row({ attempt }: { readonly attempt: DeliveryAttempt }) {
  const { at = '', outcome = 'failed', status, duration, error, answer = '' } = attempt;
  return (
    <tr>
      <td class="nowrap">
        <Time at={at} />
      </td>
      <td>
        <OutcomeBadge outcome={outcome} />
      </td>
      <td class="number nowrap">{sentIn(attempt)}</td>
      <td class="number" data-label="status">
        {status ?? <span class="muted">none</span>}
      </td>
      <td class="number nowrap" data-label="took">
        {duration === undefined ? <span class="muted">unknown</span> : `${countText(duration)} ms`}
      </td>
      <td>
        {error === undefined ? undefined : <Name text={error} />}{' '}
        {answer === '' ? undefined : (
          <code class="muted">
            <Name text={answer} />
          </code>
        )}
      </td>
    </tr>
  );
}

function sentIn({ kind, first, last }: DeliveryAttempt): string {
  const which =
    first === undefined ? '' : first === last ? countText(first) : `${countText(first)} – ${countText(last ?? first)}`;
  return kind === 'live' ? which : `${kind} ${which}`.trim();
}
