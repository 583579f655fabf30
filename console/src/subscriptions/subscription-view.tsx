import type { FeedChange, Subscription } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useReloads, useRequest } from '../api/requests.ts';
import { readsHistory } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { counted, countText } from '../components/numbers.ts';
import { Card, Fact, PageHeader } from '../components/page.tsx';
import { Answer, FailureBox, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { durationWords } from '../components/times.ts';
import { ChangeLine, Time } from '../components/values.tsx';
import { historyOf } from '../history/history-view.ts';
import { HistoryLink } from '../lists/list-page.tsx';
import { Link, place } from '../router/router.tsx';
import { AttemptsList } from './attempts-list.tsx';
import { ParkedChanges, SubscriptionActions } from './subscription-actions.tsx';
import { draftOf, memberOf, wordsOfActors } from './subscription-draft.ts';
import { SubscriptionState, WhyStopped } from './subscription-state.tsx';
import { addressOf, type TargetField, targetOf, targets } from './target-fields.ts';

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
        <Card title="Progress" body="stack">
          <Figures subscription={subscription} />
          <LastDeliveries subscription={subscription} />
          <ParkedChanges subscription={subscription} onChanged={reload} />
        </Card>
        <Card title="Settings" body="subscription-settings">
          <Settings subscription={subscription} />
        </Card>
      </div>
      {readsHistory() ? <PreviewCard subscription={subscription} /> : undefined}
      <AttemptsList subscription={subscription} />
    </div>
  );
}

const figures = [
  ['pending', 'Pending', 'Read, but not yet delivered.'],
  ['delivered', 'Delivered', 'Taken by the target.'],
  ['parked', 'Parked', 'All attempts failed. Kept for 30 days.'],
  ['skipped', 'Skipped', 'Older than the maximum age when they were recorded.'],
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

function LastDeliveries({
  subscription: { lastDelivery, lastError, replay },
}: {
  readonly subscription: Subscription;
}) {
  return (
    <dl class="facts">
      <Fact label="Last delivery">{lastDelivery === undefined ? 'none yet' : <Time at={lastDelivery.at} />}</Fact>
      <Fact label="Last error">
        {lastError === undefined ? (
          'none'
        ) : (
          <>
            <Time at={lastError.at} /> <Name text={lastError.message} />
          </>
        )}
      </Fact>
      <Fact label="Replay">
        {replay === undefined
          ? undefined
          : `in progress: ${countText(replay.left)} positions of the history still to be read`}
      </Fact>
    </dl>
  );
}

function Settings({ subscription }: { readonly subscription: Subscription }) {
  const { id, q, maxAge, hide = [], from, maker, makerName, metadata } = subscription;
  const members = targetOf(subscription);
  const { publicKey } = members;
  return (
    <dl class="facts">
      <Fact label="Id" class="mono" text={id} />
      <Fact label="Query" class="mono">
        {q === '' ? <span class="muted">every change</span> : <Name text={q} />}{' '}
        {readsHistory() ? <Link to={historyOf(q)}>Show</Link> : undefined}
      </Fact>
      {targets[members.type].fields.map(({ name, label, choices }) => (
        <Fact key={name} label={label} text={textOfMember(memberOf(members, name), choices)} />
      ))}
      <Fact label="Public key" class="mono">
        {typeof publicKey === 'string' ? publicKey : undefined}
      </Fact>
      <Fact label="Maximum age">{maxAge === undefined ? 'any' : durationWords(maxAge)}</Fact>
      <Fact label="Hidden" class={hide.length === 0 ? undefined : 'mono'}>
        {hide.length === 0 ? 'nothing' : <Name text={hide.join(', ')} />}
      </Fact>
      <Fact label="Actor details">{wordsOfActors(draftOf(subscription).actors)}</Fact>
      <Fact label="Started">{from === 'start' || from === 'now' ? starts[from] : 'at a cursor'}</Fact>
      <Fact label="Maker">
        {makerName === undefined ? undefined : <Name text={makerName} />}{' '}
        {makerName === maker ? undefined : <Name class="mono muted" text={maker} />}
      </Fact>
      <Fact label="Changed">
        <Time at={metadata.modifiedAt} />, version {metadata.version}{' '}
        <HistoryLink entity="changelog-subscription" entityId={id} />
      </Fact>
    </dl>
  );
}

const starts = { start: 'with the oldest change that was kept', now: 'when it was created' } as const;

function textOfMember(value: unknown, choices: TargetField['choices']): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.join(', ');
  if (typeof value === 'object') return Object.keys(value ?? {}).join(', ');
  return choices?.find(([choice]) => choice === value)?.[1] ?? String(value);
}

/** Changes that the preview asks for at once, and that it shows. */
const previewed = 100;
const shown = 5;

/** The changes that the subscription would have sent in the last day. */
function PreviewCard({ subscription: { id, metadata } }: { readonly subscription: Subscription }) {
  const [isOpen, setOpen] = useState(false);
  const request = useRequest(isOpen ? `preview ${id} ${metadata.version}` : undefined, (signal) =>
    annals().subscriptions.preview(id, { limit: previewed }, { signal }),
  );
  return (
    <section class="card">
      <div class="card-header">
        <h2>The last day</h2>
        {isOpen ? undefined : <Button onClick={() => setOpen(true)}>Show what matched</Button>}
      </div>
      {isOpen ? (
        <div class="card-body stack">
          <Answer of={request} lines={3}>
            {({ items, caughtUp }) => (
              <>
                <p>
                  {caughtUp ? '' : 'At least '}
                  {counted(items.length, 'change')} of the last 24 hours, by the time of recording,{' '}
                  {items.length === 1 ? 'matches' : 'match'} the query.
                </p>
                <ul class="stack-small">
                  {(items as readonly FeedChange[])
                    .slice(-shown)
                    .toReversed()
                    .map((change) => (
                      <li key={change.ref} class="subscription-notes">
                        <ChangeLine change={change} />
                      </li>
                    ))}
                </ul>
              </>
            )}
          </Answer>
        </div>
      ) : undefined}
    </section>
  );
}
