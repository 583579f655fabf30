import type { Subscription } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { allows, readsHistory } from '../api/session.ts';
import { WorkButton } from '../components/buttons.tsx';
import { SelectField } from '../components/forms.tsx';
import { Icon } from '../components/icon.tsx';
import { Dialog, DialogButton } from '../components/overlays.tsx';
import { Badge } from '../components/states.tsx';
import { tell } from '../components/toasts.ts';
import { beginnings, inputOfCurrent } from './subscription-draft.ts';

const tones = { active: 'good', retrying: 'warn', paused: 'plain', suspended: 'bad' } as const;

export function SubscriptionState({ state }: Pick<Subscription, 'state'>) {
  return <Badge tone={tones[state]}>{state}</Badge>;
}

/** Why it is paused or suspended, and what to do about it. */
const reasons: Readonly<Record<NonNullable<Subscription['reason']>, readonly [string, string]>> = {
  client: ['It was paused by a client.', 'Resume it: it continues where it stopped.'],
  disabled: ['It is not enabled.', 'Edit it and choose Enabled: it continues where it stopped.'],
  maker: [
    'The client that made it is revoked, or has lost a scope that it needs.',
    'Take it over: your client is its maker from then on, and it continues where it stopped.',
  ],
  restored: [
    'The database was restored to an earlier state, so its position in the history is lost.',
    'Resume it, and choose where it continues.',
  ],
  backup: [
    'The database was restored from a backup, and nothing is sent from it unasked.',
    'Resume it once no other copy of the database delivers: it continues where it stopped.',
  ],
  gone: [
    'The target answered that it is gone (410).',
    'Correct the target, then resume: it continues where it stopped.',
  ],
  failures: [
    'Every delivery has failed for 5 days.',
    'Correct the cause, which the attempts show, then resume: it continues where it stopped.',
  ],
};

type Outcome = 'delivered' | 'failed' | 'refused' | 'suspended';

const outcomeTones = { delivered: 'good', failed: 'bad', refused: 'bad', suspended: 'bad' } as const;

export function OutcomeBadge({ outcome }: { readonly outcome: Outcome }) {
  return <Badge tone={outcomeTones[outcome]}>{outcome}</Badge>;
}

/** Whether the session may pause, test and delete subscriptions. */
export function mayManage(): boolean {
  return allows('changelog.subscription_manage');
}

/** Whether it may make, change, resume and replay them too: who has changes sent has to be allowed to read them. */
export function mayChange(): boolean {
  return mayManage() && readsHistory();
}

interface SubscriptionProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
}

/** Why nothing is sent, what to do about it, and the button that does it. */
export function WhyStopped({ subscription, onChanged }: SubscriptionProps) {
  const { state, reason } = subscription;
  if ((state !== 'paused' && state !== 'suspended') || reason === undefined) return null;
  const [why, what] = reasons[reason];
  return (
    <section class="failure" aria-label={`Why it is ${state}`}>
      <Icon name="warning" size={18} />
      <div>
        <p class="failure-title">{why}</p>
        {mayChange() ? <p>{what}</p> : undefined}
        <StopAction subscription={subscription} onChanged={onChanged} />
      </div>
    </section>
  );
}

function StopAction({ subscription, onChanged }: SubscriptionProps) {
  const { id, name, reason } = subscription;
  if (!mayChange() || reason === 'disabled') return null;
  const act = (work: () => Promise<unknown>, words: string) => async () => {
    await work();
    tell(words);
    onChanged();
  };
  if (reason === 'maker') {
    const takeOver = () => annals().subscriptions.replace(id, inputOfCurrent(subscription));
    return <WorkButton run={act(takeOver, `${name} is yours.`)}>Take over</WorkButton>;
  }
  if (reason !== 'restored') {
    return <WorkButton run={act(() => annals().subscriptions.resume(id), `${name} is resumed.`)}>Resume</WorkButton>;
  }
  return (
    <DialogButton dialog={(close) => <ResumeDialog id={id} onClose={close} onResumed={onChanged} />}>
      Resume
    </DialogButton>
  );
}

/** Asks where a subscription resumes whose position was lost. */
function ResumeDialog({ id, onClose, onResumed }: { id: string; onClose: () => void; onResumed: () => void }) {
  const [from, setFrom] = useState<'now' | 'start'>('now');
  const run = async () => {
    await annals().subscriptions.resume(id, { from });
    tell('The subscription is resumed.');
    onResumed();
  };
  return (
    <Dialog title="Resume" onClose={onClose} actions={[{ label: 'Resume', run }]}>
      <SelectField
        label="It resumes"
        hint="Earlier changes are not sent. A replay can send them later."
        choices={beginnings}
        value={from}
        onChoose={setFrom}
      />
    </Dialog>
  );
}
