import type { Subscription } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button, Icon } from '../components/buttons.tsx';
import { tell, tellFailure } from '../components/toasts.tsx';
import { ResumeDialog } from './resume-dialog.tsx';
import { inputOfCurrent } from './subscription-draft.ts';
import { mayChange, reasons } from './subscription-state.tsx';

interface WhyStoppedProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
}

/** Why nothing goes out, what to do about it, and the button that does it. */
export function WhyStopped({ subscription, onChanged }: WhyStoppedProps) {
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

function StopAction({ subscription, onChanged }: WhyStoppedProps) {
  const [isBusy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const { id, name, reason } = subscription;
  if (!mayChange() || reason === 'disabled') return null;
  const act = async (work: () => Promise<unknown>, told: string) => {
    setBusy(true);
    try {
      await work();
      tell(told);
      onChanged();
    } catch (error) {
      tellFailure(error);
    } finally {
      setBusy(false);
    }
  };
  if (reason === 'maker') {
    const takeOver = () => annals().subscriptions.replace(id, inputOfCurrent(subscription));
    return (
      <Button disabled={isBusy} onClick={() => void act(takeOver, `${name} is yours.`)}>
        Take over
      </Button>
    );
  }
  const resume = () => act(() => annals().subscriptions.resume(id), `${name} goes on.`);
  return (
    <>
      <Button disabled={isBusy} onClick={() => (reason === 'restored' ? setAsking(true) : void resume())}>
        Resume
      </Button>
      {isAsking ? <ResumeDialog id={id} onClose={() => setAsking(false)} onResumed={onChanged} /> : undefined}
    </>
  );
}
