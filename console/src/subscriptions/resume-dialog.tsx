import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/buttons.tsx';
import { FormField } from '../components/forms.tsx';
import { Dialog } from '../components/overlays.tsx';
import { FailureBox } from '../components/states.tsx';
import { tell } from '../components/toasts.tsx';

interface ResumeDialogProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onResumed: () => void;
}

/** Asks where a subscription goes on whose place was lost. */
export function ResumeDialog({ id, onClose, onResumed }: ResumeDialogProps) {
  const [from, setFrom] = useState('now');
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const resume = async () => {
    setBusy(true);
    try {
      await annals().subscriptions.resume(id, { from });
      tell('The subscription goes on.');
      onResumed();
      onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Resume" onClose={onClose}>
      <form
        class="form-grid"
        onSubmit={(event) => {
          event.preventDefault();
          void resume();
        }}
      >
        {failure === undefined ? undefined : <FailureBox error={failure} />}
        <FormField label="It goes on" hint="What lies before is not sent. A replay can send it later.">
          {(control) => (
            <select {...control} value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
              <option value="now">with what is recorded from now on</option>
              <option value="start">with the oldest change that is kept</option>
            </select>
          )}
        </FormField>
        <div class="page-actions">
          <Button kind="primary" type="submit" disabled={isBusy}>
            Resume
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
