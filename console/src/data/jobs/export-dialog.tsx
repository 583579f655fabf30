import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { Button } from '../../components/button.tsx';
import { Dialog } from '../../components/dialog.tsx';
import { defaultExportChoice, ExportChoiceFields } from '../../components/export-choice.tsx';
import { FailureBox } from '../../components/failure-box.tsx';
import { FormField } from '../../components/form-field.tsx';

/** Starts an export of the history. */
export function ExportDialog({ onClose, onStarted }: { readonly onClose: () => void; readonly onStarted: () => void }) {
  const [q, setQ] = useState('');
  const [choice, setChoice] = useState(defaultExportChoice);
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const start = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await annals().jobs.export({ q, ...choice });
      onStarted();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New export" onClose={onClose}>
      <form class="form-grid" onInput={() => setFailure(undefined)} onSubmit={(event) => void start(event)}>
        {failure === undefined ? undefined : <FailureBox error={failure} />}
        <FormField
          label="Query"
          hint="A query of the history. Without a time it means the last 30 days. An empty query takes everything in them."
        >
          {(control) => (
            <input
              {...control}
              class="mono"
              spellcheck={false}
              autocomplete="off"
              placeholder='entity:order occurredAt:>="2026-10-01T00:00:00Z"'
              value={q}
              onInput={(event) => setQ(event.currentTarget.value)}
            />
          )}
        </FormField>
        <ExportChoiceFields choice={choice} onChange={setChoice} />
        <div class="page-actions">
          <Button kind="primary" type="submit" disabled={isBusy}>
            Start
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
