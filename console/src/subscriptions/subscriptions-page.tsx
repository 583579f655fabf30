import type { Subscription } from '@annals/client';
import { annals } from '../api/annals.ts';
import { useReloads } from '../api/requests.ts';
import { Button } from '../components/buttons.tsx';
import { countText } from '../components/numbers.ts';
import { TabbedViews, type View } from '../components/page.tsx';
import { later } from '../components/states.tsx';
import type { Column } from '../components/table.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { ListPage, useList } from '../lists/list-page.tsx';
import { Link, navigate } from '../router/router.tsx';
import { mayChange, SubscriptionState } from './subscription-state.tsx';
import { SubscriptionView } from './subscription-view.tsx';
import { addressOf, targetOf, targets } from './target-fields.ts';
import './subscriptions.css';

// Rarely the first view of a session.
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
  return (
    <ListPage
      list={list}
      title="Subscriptions"
      lead="Where changes are sent to as they are recorded."
      example="target.type:webhook name:Price*"
      chips={[
        ['Webhooks', 'target.type:webhook'],
        ['Alerts', 'target.type:email'],
      ]}
      noun="subscription"
      empty={{
        icon: 'send',
        title: 'There is no subscription yet',
        text: 'A subscription sends the changes of a query to a webhook, as batches to another system, or as an alert by e-mail.',
      }}
      add={
        mayChange() ? (
          <Button kind="primary" icon="plus" onClick={() => navigate({ path: 'subscriptions/new' })}>
            New subscription
          </Button>
        ) : undefined
      }
      class="wraps"
      keyOf={({ id }) => id}
      columns={columns}
    />
  );
}

const amount = (name: 'pending' | 'parked' | 'skipped', label: string): Column<Subscription> => ({
  label,
  name,
  class: 'amount',
  cell: (subscription) => (
    <span class={name === 'parked' && subscription.parked > 0 ? 'subscription-parked' : undefined}>
      {countText(subscription[name])}
    </span>
  ),
});

const columns: readonly Column<Subscription>[] = [
  {
    label: 'Name',
    sort: 'name',
    cell: (subscription) => {
      const target = targetOf(subscription);
      return (
        <>
          <Link class="row-link" to={{ path: 'subscriptions/one', parameters: { id: subscription.id } }}>
            <Name text={subscription.name} />
          </Link>
          <div class="muted cell-cut">
            {targets[target.type].name} · <Name text={addressOf(target)} />
          </div>
        </>
      );
    },
  },
  { label: 'State', cell: ({ state }) => <SubscriptionState state={state} /> },
  amount('pending', 'Pending'),
  amount('parked', 'Parked'),
  amount('skipped', 'Skipped'),
  {
    label: 'Last delivery',
    name: 'last delivery',
    class: 'nowrap',
    cell: ({ lastDelivery }) =>
      lastDelivery === undefined ? <span class="muted">none yet</span> : <Time at={lastDelivery.at} />,
  },
  {
    label: 'Last error',
    name: 'last error',
    cell: ({ lastError }) =>
      lastError === undefined ? (
        <span class="muted">none</span>
      ) : (
        <>
          <Time at={lastError.at} detail="minute" /> <Name class="muted subscription-error" text={lastError.message} />
        </>
      ),
  },
];
