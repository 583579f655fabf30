import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/buttons.tsx';
import { FormField } from '../components/forms.tsx';
import { Dialog } from '../components/overlays.tsx';
import { FailureBox } from '../components/states.tsx';
import { momentOf, momentText, startOfDay, zoneName } from '../components/times.ts';
import { tell } from '../components/toasts.tsx';

interface ReplayDialogProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onStarted: () => void;
}

/** Asks for a time, and sends what was recorded in it once more. */
export function ReplayDialog({ id, onClose, onStarted }: ReplayDialogProps) {
  const [from, setFrom] = useState(() => momentText(startOfDay(Date.now())).slice(0, 16));
  const [to, setTo] = useState('');
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [begin, end] = [momentOfField(from), to === '' ? Date.now() : momentOfField(to)];
  const isReady = begin < end;
  const start = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      const until = to === '' ? {} : { to: new Date(end).toISOString() };
      await annals().subscriptions.replay(id, { from: new Date(begin).toISOString(), ...until });
      tell('The replay has begun.');
      onStarted();
      onClose();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="Replay" onClose={onClose}>
      <form
        class="form-grid"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady) void start();
        }}
      >
        {failure === undefined ? undefined : <FailureBox error={failure} />}
        <p>What was recorded in this time and matches the query is sent once more, beside what comes.</p>
        <FormField label="From">
          {(control) => (
            <input
              {...control}
              type="datetime-local"
              value={from}
              onInput={(event) => setFrom(event.currentTarget.value)}
            />
          )}
        </FormField>
        <FormField
          label="To"
          hint="Empty: until now."
          error={Number.isNaN(begin) || Number.isNaN(end) || isReady ? undefined : 'The end is before the beginning.'}
        >
          {(control) => (
            <input
              {...control}
              type="datetime-local"
              value={to}
              onInput={(event) => setTo(event.currentTarget.value)}
            />
          )}
        </FormField>
        <p class="muted">
          Times are those of {zoneName()}. A receiver gets changes again that it has already: webhooks have the same id.
        </p>
        <div class="page-actions">
          <Button kind="primary" type="submit" disabled={isBusy || !isReady}>
            Send again
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Of a field such as `2026-11-22T14:30`, by the clock that the reader has chosen; NaN where it is half written. */
function momentOfField(written: string): number {
  const [date = '', time = ''] = written.split('T');
  return momentOf(date, time);
}
