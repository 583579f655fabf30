import type { Subscription } from '@annals/client';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { readsHistory } from '../api/session.ts';
import { countText } from '../components/numbers.ts';
import { PageHeader } from '../components/page.tsx';
import { FailureBox, Skeleton } from '../components/states.tsx';
import { durationWords } from '../components/times.ts';
import { Name, Time } from '../components/values.tsx';
import { historyOf } from '../history/history-view.ts';
import { HistoryLink } from '../lists/list-page.tsx';
import { Link, place } from '../router/router.tsx';
import { AttemptsList } from './attempts-list.tsx';
import { ParkedChanges } from './parked-changes.tsx';
import { PreviewCard } from './preview-card.tsx';
import { SubscriptionActions } from './subscription-actions.tsx';
import { memberOf } from './subscription-draft.ts';
import { SubscriptionState, useReloads } from './subscription-state.tsx';
import { addressOf, targetOf, targets } from './target-fields.ts';
import { WhyStopped } from './why-stopped.tsx';

/** One subscription: how far it is, what failed and why, and what can be done about it. */
export function SubscriptionView() {
  const id = place.value.parameters.get('id') ?? '';
  const request = useRequest(`subscription ${id}`, (signal) => annals().subscriptions.get(id, { signal }));
  const { value: subscription, error, reload } = request;
  useReloads(request);
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (subscription === undefined || subscription.id !== id) return <Skeleton />;
  const { name, state } = subscription;
  const target = targetOf(subscription);
  return (
    <div class="stack">
      <PageHeader
        title={
          <>
            <Name text={name} /> <SubscriptionState state={state} />
          </>
        }
        lead={
          <>
            {targets[target.type].name} · <Name text={addressOf(target)} />
          </>
        }
      >
        <SubscriptionActions subscription={subscription} onChanged={reload} />
      </PageHeader>
      <WhyStopped subscription={subscription} onChanged={reload} />
      <div class="subscription-columns">
        <section class="card">
          <h2 class="card-header">How far it is</h2>
          <div class="card-body stack">
            <Figures subscription={subscription} />
            <LastOnes subscription={subscription} />
            <ParkedChanges subscription={subscription} onChanged={reload} />
          </div>
        </section>
        <section class="card">
          <h2 class="card-header">Settings</h2>
          <div class="card-body subscription-settings">
            <Settings subscription={subscription} />
          </div>
        </section>
      </div>
      {readsHistory() ? <PreviewCard subscription={subscription} /> : undefined}
      <AttemptsList id={id} />
    </div>
  );
}

const figures = [
  ['pending', 'Pending', 'Read, and still to be delivered.'],
  ['delivered', 'Delivered', 'The target took them.'],
  ['parked', 'Parked', 'All attempts failed. Kept for 30 days.'],
  ['skipped', 'Skipped', 'Older than the greatest age when they were recorded.'],
  ['dropped', 'Dropped', 'Parked ones that were deleted, and those that retention dropped before they were delivered.'],
  ['expired', 'Expired', 'Dropped by retention before they were read, whether they would have matched or not.'],
] as const;

function Figures({ subscription }: { readonly subscription: Subscription }) {
  return (
    <dl class="subscription-figures">
      {figures.map(([name, label, title]) => (
        <div key={name} title={title}>
          <dt>{label}</dt>
          <dd class={`number${name === 'parked' && subscription.parked > 0 ? ' subscription-parked' : ''}`}>
            {countText(subscription[name])}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function LastOnes({ subscription: { lastDelivery, lastError, replay } }: { readonly subscription: Subscription }) {
  return (
    <dl class="facts">
      <dt>Last delivery</dt>
      <dd>{lastDelivery === undefined ? 'none yet' : <Time at={lastDelivery.at} />}</dd>
      <dt>Last error</dt>
      <dd>
        {lastError === undefined ? (
          'none'
        ) : (
          <>
            <Time at={lastError.at} /> <Name text={lastError.message} />
          </>
        )}
      </dd>
      {replay === undefined ? undefined : (
        <>
          <dt>Replay</dt>
          <dd>under way: {countText(replay.left)} positions of the history still to be read</dd>
        </>
      )}
    </dl>
  );
}

function Settings({ subscription }: { readonly subscription: Subscription }) {
  const { id, q, maxAge, hide = [], from, maker, metadata } = subscription;
  const members = targetOf(subscription);
  const rows = targets[members.type].fields.flatMap(({ name, label, choices }): [string, string][] => {
    const value = memberOf(members, name);
    if (value === undefined) return [];
    if (typeof value === 'boolean') return [[label, value ? 'yes' : 'no']];
    if (typeof value === 'object') return [[label, Object.keys(value as object).join(', ')]];
    return [[label, choices?.find(([choice]) => choice === value)?.[1] ?? String(value)]];
  });
  const { publicKey } = members;
  return (
    <dl class="facts">
      <dt>Id</dt>
      <dd class="mono">
        <Name text={id} />
      </dd>
      <dt>Query</dt>
      <dd class="mono">
        {q === '' ? <span class="muted">every change</span> : <Name text={q} />}{' '}
        {readsHistory() ? <Link to={historyOf(q)}>Show</Link> : undefined}
      </dd>
      {rows.map(([label, text]) => [
        <dt key={label}>{label}</dt>,
        <dd key={`${label} value`}>
          <Name text={text} />
        </dd>,
      ])}
      {typeof publicKey === 'string' ? (
        <>
          <dt>Public key</dt>
          <dd class="mono">{publicKey}</dd>
        </>
      ) : undefined}
      <dt>Greatest age</dt>
      <dd>{maxAge === undefined ? 'any' : durationWords(maxAge)}</dd>
      <dt>Hidden</dt>
      <dd class={hide.length === 0 ? undefined : 'mono'}>
        {hide.length === 0 ? 'nothing' : <Name text={hide.join(', ')} />}
      </dd>
      <dt>Began</dt>
      <dd>{from === 'start' || from === 'now' ? beginnings[from] : 'at a cursor'}</dd>
      <dt>Maker</dt>
      <dd class="mono">
        <Name text={maker} />
      </dd>
      <dt>Changed</dt>
      <dd>
        <Time at={metadata.modifiedAt} />, version {metadata.version}{' '}
        <HistoryLink entity="changelog-subscription" entityId={id} />
      </dd>
    </dl>
  );
}

const beginnings = { start: 'with the oldest change that was kept', now: 'when it was made' } as const;
