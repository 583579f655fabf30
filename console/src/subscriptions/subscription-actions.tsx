import type { Subscription } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { Button, CopyButton, WorkButton } from '../components/buttons.tsx';
import { TextField } from '../components/forms.tsx';
import { counted } from '../components/numbers.ts';
import { ConfirmButton, Dialog, DialogButton } from '../components/overlays.tsx';
import { FailureBox, Progress } from '../components/states.tsx';
import { momentOf, momentText, startOfDay, zoneName } from '../components/times.ts';
import { tell } from '../components/toasts.ts';
import { navigate } from '../router/router.tsx';
import { ResultFacts, SentRequestView } from './attempts-list.tsx';
import { mayChange, mayManage } from './subscription-state.tsx';
import { type TargetType, targetOf } from './target-fields.ts';

interface SubscriptionProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
}

/** What can be done with a subscription, by what the session allows. */
export function SubscriptionActions({ subscription, onChanged }: SubscriptionProps) {
  const { id, name, state } = subscription;
  const { type } = targetOf(subscription);
  const [shown, setShown] = useState<ShownKey>();
  if (!mayManage()) return null;
  const pause = async () => {
    await annals().subscriptions.pause(id);
    tell(`${name} is paused.`);
    onChanged();
  };
  return (
    <>
      <DialogButton
        icon="send"
        dialog={(close) => <TestDialog id={id} type={type} onClose={close} onTested={onChanged} />}
      >
        Test
      </DialogButton>
      {state === 'active' || state === 'retrying' ? (
        <WorkButton icon="stop" run={pause}>
          Pause
        </WorkButton>
      ) : undefined}
      {mayChange() ? (
        <>
          <Button icon="edit" onClick={() => navigate({ path: 'subscriptions/edit', parameters: { id } })}>
            Edit
          </Button>
          {type === 'email' ? undefined : (
            <DialogButton
              icon="history"
              dialog={(close) => <ReplayDialog id={id} onClose={close} onStarted={onChanged} />}
            >
              Replay…
            </DialogButton>
          )}
        </>
      ) : undefined}
      {type === 'webhook' ? (
        <ConfirmButton
          ask={{
            title: 'Make a new key?',
            label: 'Make a new key',
            run: async () => {
              setShown(await annals().subscriptions.rotate(id));
              onChanged();
            },
            body: <p>Deliveries are signed with the new key and, for 24 hours, with the previous one too.</p>,
          }}
        >
          Rotate the key…
        </ConfirmButton>
      ) : undefined}
      <ConfirmButton
        kind="danger"
        icon="remove"
        aria-label="Delete the subscription"
        ask={{
          title: 'Delete the subscription?',
          run: async () => {
            await annals().subscriptions.delete(id);
            tell(`${name} is deleted.`);
            navigate({ path: 'subscriptions' });
          },
          body: (
            <p>
              Nothing more is sent. What is pending or parked is not delivered, and the list of attempts is deleted. The
              changes stay in the history.
            </p>
          ),
        }}
      />
      {shown === undefined ? undefined : (
        <SecretDialog
          shown={shown}
          note="The previous key signs as well for 24 hours."
          onClose={() => setShown(undefined)}
        />
      )}
    </>
  );
}

/** What the service shows once of a key for signatures. */
export interface ShownKey {
  readonly secret?: string | undefined;
  readonly publicKey?: string | undefined;
}

interface SecretDialogProps {
  readonly shown: ShownKey;
  readonly note?: string;
  readonly onClose: () => void;
}

/** Shows what the receiver checks signatures with. A secret is shown only once. */
export function SecretDialog({ shown: { secret, publicKey }, note, onClose }: SecretDialogProps) {
  const [text = '', what] = secret === undefined ? [publicKey, 'the public key'] : [secret, 'the secret'];
  return (
    <Dialog
      title={secret === undefined ? 'The public key of the signatures' : 'The secret of the signatures'}
      onClose={onClose}
      footer={
        <Button kind="primary" onClick={onClose}>
          Done
        </Button>
      }
    >
      <p>
        Give it to the receiver, which checks the signatures with it.{' '}
        {secret === undefined
          ? 'It stays among the settings.'
          : 'It is shown only once: store it before you close this dialog.'}
      </p>
      <div class="subscription-key">
        <code>{text}</code>
        <CopyButton what={what} label="Copy" text={() => text} />
      </div>
      {note === undefined ? undefined : <p class="muted">{note}</p>}
    </Dialog>
  );
}

interface TestDialogProps {
  readonly id: string;
  readonly type: TargetType;
  readonly onClose: () => void;
  readonly onTested: () => void;
}

/** Sends a sample, and shows what was sent and what the target answered. */
function TestDialog({ id, type, onClose, onTested }: TestDialogProps) {
  const { value, error, isLoading, reload } = useRequest(`test ${id}`, (signal) =>
    annals().subscriptions.test(id, { signal, maxRetries: 0 }),
  );
  useEffect(() => {
    if (value !== undefined) onTested();
  }, [value]);
  return (
    <Dialog
      title="Test"
      onClose={onClose}
      footer={
        <>
          <Button disabled={isLoading} onClick={reload}>
            Test again
          </Button>
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <p>Annals sends a sample that is marked as one. Nothing of the history is sent.</p>
      <FailureBox error={error} />
      {isLoading ? (
        <Progress share={undefined} label="The sample is sent" />
      ) : value === undefined ? undefined : (
        <>
          <dl class="facts">
            <ResultFacts type={type} result={{ ...value, kind: 'test' }} />
          </dl>
          {value.request === undefined ? undefined : (
            <SentRequestView sent={value.request} note="A sample. Secrets and the signature are masked." />
          )}
        </>
      )}
    </Dialog>
  );
}

/** Asks for a time, and sends the changes recorded in it once more. */
function ReplayDialog({ id, onClose, onStarted }: { id: string; onClose: () => void; onStarted: () => void }) {
  const [from, setFrom] = useState(() => momentText(startOfDay(Date.now())).slice(0, 16));
  const [to, setTo] = useState('');
  const [begin, end] = [momentOfField(from), to === '' ? Date.now() : momentOfField(to)];
  const isReady = begin < end;
  const run = async () => {
    const until = to === '' ? {} : { to: new Date(end).toISOString() };
    await annals().subscriptions.replay(id, { from: new Date(begin).toISOString(), ...until });
    tell('The replay has started.');
    onStarted();
  };
  return (
    <Dialog title="Replay" onClose={onClose} actions={[{ label: 'Send again', isReady, run }]}>
      <p>Changes that were recorded in this time and match the query are sent once more, along with new ones.</p>
      <TextField kind="moment" label="From" value={from} onText={setFrom} />
      <TextField
        kind="moment"
        label="To"
        hint="Empty: until now."
        error={Number.isNaN(begin) || Number.isNaN(end) || isReady ? undefined : 'The end is before the beginning.'}
        value={to}
        onText={setTo}
      />
      <p class="muted">
        Times are those of {zoneName()}. A receiver gets changes again that it has already: webhooks have the same id.
      </p>
    </Dialog>
  );
}

/** Of a field such as `2026-11-22T14:30`, by the clock that the reader has chosen; NaN while it is incomplete. */
function momentOfField(written: string): number {
  const [date = '', time = ''] = written.split('T');
  return momentOf(date, time);
}

/** Changes that could not be delivered: they are sent again, or dropped. */
export function ParkedChanges({ subscription: { id, parked }, onChanged }: SubscriptionProps) {
  if (parked === 0 || !mayManage()) return null;
  const sendAgain = async () => {
    await annals().subscriptions.replay(id, { parked: true });
    tell('Parked changes are sent again.');
    onChanged();
  };
  return (
    <div class="subscription-notes">
      <span>{counted(parked, 'change is', 'changes are')} parked.</span>
      {mayChange() ? <WorkButton run={sendAgain}>Send again</WorkButton> : undefined}
      <ConfirmButton
        kind="danger"
        ask={{
          title: 'Delete what is parked?',
          run: async () => {
            await annals().subscriptions.deleteParked(id);
            tell('No change is parked any more.');
            onChanged();
          },
          body: (
            <p>
              The target does not get {counted(parked, 'change')}. They stay in the history, and count as dropped here.
            </p>
          ),
        }}
      >
        Delete parked
      </ConfirmButton>
    </div>
  );
}
