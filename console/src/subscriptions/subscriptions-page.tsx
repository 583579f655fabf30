import { PageHeader, TabbedViews, type View } from '../components/page.tsx';
import { EmptyState, later } from '../components/states.tsx';
import { SubscriptionView } from './subscription-view.tsx';
import './subscriptions.css';
import type { Subscription } from '@annals/client';
import { annals } from '../api/annals.ts';
import { Button } from '../components/buttons.tsx';
import { countText } from '../components/numbers.ts';
import { Name, Time } from '../components/values.tsx';
import { FilterBar, FilterChip, ListCard, SortHeading } from '../lists/list-page.tsx';
import { useList } from '../lists/use-list.ts';
import { Link, navigate } from '../router/router.tsx';
import { mayChange, SubscriptionState, useReloads } from './subscription-state.tsx';
import { addressOf, targetOf, targets } from './target-fields.ts';

// Nobody begins with it.
const SubscriptionEditor = later(async () => (await import('./subscription-editor.tsx')).SubscriptionEditor);

const managing = ['changelog.subscription_manage'];
const reading = ['changelog.subscription_read', ...managing];

const views: readonly View[] = [
  { path: 'subscriptions/all', scopes: reading, Content: SubscriptionsView },
  { path: 'subscriptions/one', scopes: reading, Content: SubscriptionView },
  { path: 'subscriptions/edit', scopes: managing, Content: SubscriptionEditor },
  { path: 'subscriptions/new', scopes: managing, Content: SubscriptionEditor },
];

/** What goes out of the history: where to, how far, and what failed. */
export function SubscriptionsPage() {
  return <TabbedViews root="subscriptions" label="Subscriptions" views={views} />;
}

/** What goes out of the history: all subscriptions of the tenant, with their state and how far they are. */
function SubscriptionsView() {
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
