import type { Subscription } from '@annals/client';
import { annals } from '../api/annals.ts';
import { Button } from '../components/button.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Name } from '../components/name.tsx';
import { countText } from '../components/numbers.ts';
import { PageHeader } from '../components/page-header.tsx';
import { Time } from '../components/time.tsx';
import { FilterBar, FilterChip } from '../lists/filter-bar.tsx';
import { ListCard } from '../lists/list-card.tsx';
import { SortHeading } from '../lists/sort-heading.tsx';
import { useList } from '../lists/use-list.ts';
import { Link } from '../router/link.tsx';
import { navigate } from '../router/location.ts';
import { mayChange } from './may-change.ts';
import { SubscriptionState } from './subscription-state.tsx';
import { addressOf, targetOf, targets } from './target-fields.ts';
import { useReloads } from './use-reloads.ts';

/** What goes out of the history: all subscriptions of the tenant, with their state and how far they are. */
export function SubscriptionsView() {
  const list = useList({
    name: 'subscriptions',
    defaultSort: 'name',
    read: (parameters, signal) => annals().subscriptions.list(parameters, { signal }),
  });
  useReloads(list.page);
  const add = mayChange() ? (
    <Button kind="primary" icon="plus" onClick={() => navigate({ path: 'subscriptions/new' })}>
      New subscription
    </Button>
  ) : undefined;
  return (
    <>
      <PageHeader title="Subscriptions" lead="Where changes are sent to as they are recorded.">
        {add}
      </PageHeader>
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="target.type:webhook name:Price*">
        <FilterChip label="Webhooks" term="target.type:webhook" filter={list.filter} onFilter={list.setFilter} />
        <FilterChip label="Alerts" term="target.type:email" filter={list.filter} onFilter={list.setFilter} />
      </FilterBar>
      <ListCard
        list={list}
        one="subscription"
        empty={
          <EmptyState icon="send" title="There is no subscription yet">
            <p>
              A subscription sends the changes of a query to a webhook, as batches to another system, or as an alert by
              e-mail.
            </p>
            {add}
          </EmptyState>
        }
      >
        {(subscriptions) => (
          <table class="table wraps">
            <thead>
              <tr>
                <SortHeading label="Name" field="name" list={list} />
                <th scope="col">State</th>
                <th scope="col" class="amount">
                  Pending
                </th>
                <th scope="col" class="amount">
                  Parked
                </th>
                <th scope="col" class="amount">
                  Skipped
                </th>
                <th scope="col">Last delivery</th>
                <th scope="col">Last error</th>
              </tr>
            </thead>
            <tbody>
              {subscriptions.map((subscription) => (
                <Row key={subscription.id} subscription={subscription} />
              ))}
            </tbody>
          </table>
        )}
      </ListCard>
    </>
  );
}

function Row({ subscription }: { readonly subscription: Subscription }) {
  const target = targetOf(subscription);
  const { id, name, state, pending, parked, skipped, lastDelivery, lastError } = subscription;
  return (
    <tr>
      <td>
        <Link class="row-link" to={{ path: 'subscriptions/one', parameters: { id } }}>
          <Name text={name} />
        </Link>
        <div class="muted cell-cut">
          {targets[target.type].name} · <Name text={addressOf(target)} />
        </div>
      </td>
      <td>
        <SubscriptionState state={state} />
      </td>
      <td class="amount" data-label="pending">
        {countText(pending)}
      </td>
      <td class={`amount${parked > 0 ? ' subscription-parked' : ''}`} data-label="parked">
        {countText(parked)}
      </td>
      <td class="amount" data-label="skipped">
        {countText(skipped)}
      </td>
      <td class="nowrap" data-label="last delivery">
        {lastDelivery === undefined ? <span class="muted">none yet</span> : <Time at={lastDelivery.at} />}
      </td>
      <td data-label="last error">
        {lastError === undefined ? (
          <span class="muted">none</span>
        ) : (
          <>
            <Time at={lastError.at} detail="minute" />{' '}
            <span class="muted subscription-error">
              <Name text={lastError.message} />
            </span>
          </>
        )}
      </td>
    </tr>
  );
}
