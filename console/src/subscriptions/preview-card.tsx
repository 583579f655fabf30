import type { FeedChange, Subscription } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { Button } from '../components/buttons.tsx';
import { counted } from '../components/numbers.ts';
import { FailureBox, Skeleton } from '../components/states.tsx';
import { ChangeTypeMark, Name, Time } from '../components/values.tsx';

/** Changes that the card asks for at once, and that it shows. */
const asked = 100;
const shown = 5;

/** What the subscription would have sent in the last day. */
export function PreviewCard({ subscription: { id, metadata } }: { readonly subscription: Subscription }) {
  const [isOpen, setOpen] = useState(false);
  const { value, error, reload } = useRequest(isOpen ? `preview ${id} ${metadata.version}` : undefined, (signal) =>
    annals().subscriptions.preview(id, { limit: asked }, { signal }),
  );
  return (
    <section class="card">
      <div class="card-header">
        <h2>The last day</h2>
        {isOpen ? undefined : <Button onClick={() => setOpen(true)}>Show what matched</Button>}
      </div>
      {isOpen ? (
        <div class="card-body stack">
          {error === undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
          {value === undefined ? (
            error === undefined ? (
              <Skeleton lines={3} />
            ) : undefined
          ) : (
            <>
              <p>
                {value.caughtUp ? '' : 'At least '}
                {counted(value.items.length, 'change')} of the last 24 hours, by the time of recording,{' '}
                {value.items.length === 1 ? 'matches' : 'match'} the query.
              </p>
              <ul class="stack-small">
                {(value.items as readonly FeedChange[])
                  .slice(-shown)
                  .toReversed()
                  .map(({ ref, at, type, entity, entityId, actor }) => (
                    <li key={ref} class="subscription-notes">
                      <ChangeTypeMark type={type} short />
                      <span>
                        <Name text={entity} /> <Name text={entityId} />
                      </span>
                      <span class="muted">
                        <Name text={actor} />
                      </span>
                      <Time at={at} />
                    </li>
                  ))}
              </ul>
            </>
          )}
        </div>
      ) : undefined}
    </section>
  );
}
