import { later } from '../components/later.tsx';
import { TabbedViews, type View } from '../components/tabbed-views.tsx';
import { SubscriptionView } from './subscription-view.tsx';
import { SubscriptionsView } from './subscriptions-view.tsx';
import './subscriptions.css';

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
