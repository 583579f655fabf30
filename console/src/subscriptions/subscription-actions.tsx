import type { Subscription } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/buttons.tsx';
import { ConfirmDialog } from '../components/overlays.tsx';
import { later } from '../components/states.tsx';
import { tell, tellFailure } from '../components/toasts.tsx';
import { navigate } from '../router/router.tsx';
import { SecretDialog, type ShownKey } from './secret-dialog.tsx';
import { mayChange, mayManage } from './subscription-state.tsx';
import { targetOf } from './target-fields.ts';
import { TestDialog } from './test-dialog.tsx';

const ReplayDialog = later(async () => (await import('./replay-dialog.tsx')).ReplayDialog);

interface SubscriptionActionsProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
}

type Asking = 'test' | 'replay' | 'rotate' | 'delete';

/** What can be done with a subscription, by what the session allows. */
export function SubscriptionActions({ subscription, onChanged }: SubscriptionActionsProps) {
  const { id, name, state } = subscription;
  const { type } = targetOf(subscription);
  const [asking, setAsking] = useState<Asking>();
  const [shown, setShown] = useState<ShownKey>();
  if (!mayManage()) return null;
  const close = () => setAsking(undefined);
  const isRunning = state === 'active' || state === 'retrying';
  const pause = async () => {
    try {
      await annals().subscriptions.pause(id);
      tell(`${name} is paused.`);
      onChanged();
    } catch (error) {
      tellFailure(error);
    }
  };
  return (
    <>
      <Button icon="send" onClick={() => setAsking('test')}>
        Test
      </Button>
      {isRunning ? (
        <Button icon="stop" onClick={() => void pause()}>
          Pause
        </Button>
      ) : undefined}
      {mayChange() ? (
        <>
          <Button icon="edit" onClick={() => navigate({ path: 'subscriptions/edit', parameters: { id } })}>
            Edit
          </Button>
          {type === 'email' ? undefined : (
            <Button icon="history" onClick={() => setAsking('replay')}>
              Replay…
            </Button>
          )}
        </>
      ) : undefined}
      {type === 'webhook' ? <Button onClick={() => setAsking('rotate')}>Rotate the key…</Button> : undefined}
      <Button kind="danger" icon="remove" aria-label="Delete the subscription" onClick={() => setAsking('delete')} />
      {asking === 'test' ? <TestDialog id={id} onClose={close} onTested={onChanged} /> : undefined}
      {asking === 'replay' ? <ReplayDialog id={id} onClose={close} onStarted={onChanged} /> : undefined}
      {asking === 'rotate' ? (
        <ConfirmDialog
          title="Make a new key?"
          action="Make a new key"
          onClose={close}
          onConfirm={async () => {
            setShown(await annals().subscriptions.rotate(id));
            onChanged();
          }}
        >
          <p>Deliveries are signed with the new key and, for 24 hours, with the one before it too.</p>
        </ConfirmDialog>
      ) : undefined}
      {shown === undefined ? undefined : (
        <SecretDialog
          shown={shown}
          note="The key before it signs as well for 24 hours."
          onClose={() => setShown(undefined)}
        />
      )}
      {asking === 'delete' ? (
        <ConfirmDialog
          title="Delete the subscription?"
          action="Delete"
          onClose={close}
          onConfirm={async () => {
            await annals().subscriptions.delete(id);
            tell(`${name} is deleted.`);
            navigate({ path: 'subscriptions' });
          }}
        >
          <p>
            Nothing more is sent. What is pending or parked is not delivered, and the list of attempts is deleted. The
            changes stay in the history.
          </p>
        </ConfirmDialog>
      ) : undefined}
    </>
  );
}
