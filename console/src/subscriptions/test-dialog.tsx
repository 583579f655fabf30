import { useEffect } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/requests.ts';
import { Button } from '../components/buttons.tsx';
import { countText } from '../components/numbers.ts';
import { Dialog } from '../components/overlays.tsx';
import { FailureBox, Progress } from '../components/states.tsx';
import { Name } from '../components/values.tsx';
import { OutcomeBadge } from './subscription-state.tsx';

interface TestDialogProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onTested: () => void;
}

/** Sends a sample, and shows what the target answered. */
export function TestDialog({ id, onClose, onTested }: TestDialogProps) {
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
      actions={
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
      <p>Annals sends a sample that says that it is one. Nothing of the history is sent.</p>
      {error === undefined ? undefined : <FailureBox error={error} />}
      {isLoading ? (
        <Progress share={undefined} label="The sample is sent" />
      ) : value === undefined ? undefined : (
        <dl class="facts">
          <dt>Outcome</dt>
          <dd>
            <OutcomeBadge outcome={value.outcome} />{' '}
            {value.error === undefined ? undefined : <Name text={value.error} />}
          </dd>
          {value.status === undefined ? undefined : (
            <>
              <dt>Status</dt>
              <dd class="number">{value.status}</dd>
            </>
          )}
          {value.duration === undefined ? undefined : (
            <>
              <dt>Took</dt>
              <dd class="number">{countText(value.duration)} ms</dd>
            </>
          )}
          {value.answer === undefined || value.answer === '' ? undefined : (
            <>
              <dt>Answer</dt>
              <dd>
                <code>
                  <Name text={value.answer} />
                </code>
              </dd>
            </>
          )}
        </dl>
      )}
    </Dialog>
  );
}
