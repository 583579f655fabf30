import type { Subscription } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/buttons.tsx';
import { counted } from '../components/numbers.ts';
import { ConfirmDialog } from '../components/overlays.tsx';
import { tell, tellFailure } from '../components/toasts.tsx';
import { mayChange, mayManage } from './subscription-state.tsx';

interface ParkedChangesProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
}

/** What could not be delivered: it is sent again, or given up. */
export function ParkedChanges({ subscription: { id, parked }, onChanged }: ParkedChangesProps) {
  const [isDeleting, setDeleting] = useState(false);
  if (parked === 0 || !mayManage()) return null;
  const sendAgain = async () => {
    try {
      await annals().subscriptions.replay(id, { parked: true });
      tell('What was parked is sent again.');
      onChanged();
    } catch (error) {
      tellFailure(error);
    }
  };
  return (
    <div class="subscription-notes">
      <span>{counted(parked, 'change is', 'changes are')} parked.</span>
      {mayChange() ? <Button onClick={() => void sendAgain()}>Send again</Button> : undefined}
      <Button kind="danger" onClick={() => setDeleting(true)}>
        Delete parked
      </Button>
      {isDeleting ? (
        <ConfirmDialog
          title="Delete what is parked?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await annals().subscriptions.deleteParked(id);
            tell('Nothing is parked any more.');
            onChanged();
          }}
        >
          <p>
            The target does not get {counted(parked, 'change')}. They stay in the history, and count as dropped here.
          </p>
        </ConfirmDialog>
      ) : undefined}
    </div>
  );
}
