import type { SavedView } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/button.tsx';
import { Dialog } from '../components/dialog.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { FormField } from '../components/form-field.tsx';
import { tell } from '../components/toasts.tsx';
import { timeChoices } from '../history/time-choices.ts';
import { navigate } from '../router/location.ts';
import { changeView } from './change-views.ts';
import { ViewNameField } from './view-name-field.tsx';
import { divided, rangeText } from './view-range.ts';
import { readViews, targetOfView } from './views.ts';

interface SaveViewProps {
  readonly q: string;
  /** The saved view that the query began as. */
  readonly view: SavedView | undefined;
  readonly onClose: () => void;
}

/** Asks for a name, and saves the query with its time as a new view, or in place of the one that it began as. */
export function SaveView({ q, view, onClose }: SaveViewProps) {
  const [parts] = useState(() => divided(q, Date.now()));
  const [name, setName] = useState('');
  const [range, setRange] = useState(parts.range);
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const ranges = [...new Set([parts.range, ...timeChoices.map((choice) => choice.range)])];

  const save = async (write: () => Promise<string>, told: string) => {
    setBusy(true);
    setFailure(undefined);
    try {
      const id = await write();
      await readViews();
      tell(told);
      onClose();
      navigate(targetOfView(id));
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  const create = () =>
    save(
      async () => (await annals().views.create({ name: name.trim(), q: parts.q, range })).id,
      `${name.trim()} is saved. Its address can be shared.`,
    );
  return (
    <Dialog title="Save view" onClose={onClose}>
      <form
        class="form-grid"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== '') void create();
        }}
      >
        {failure === undefined ? undefined : <FailureBox error={failure} />}
        <p>{parts.q === '' ? 'All changes' : <code>{parts.q}</code>}</p>
        <ViewNameField name={name} onName={setName} />
        <FormField label="Time" hint="A time such as the last 7 days moves on with the clock.">
          {(control) => (
            <select {...control} value={range} onChange={(event) => setRange(event.currentTarget.value)}>
              {ranges.map((one) => (
                <option key={one} value={one}>
                  {rangeText(one)}
                </option>
              ))}
            </select>
          )}
        </FormField>
        <p class="muted">Everybody who may read the history of this tenant sees the view.</p>
        <div class="page-actions">
          <Button kind="primary" type="submit" disabled={isBusy || name.trim() === ''}>
            Save
          </Button>
          {view === undefined ? undefined : (
            <Button
              disabled={isBusy}
              onClick={() =>
                void save(async () => {
                  await changeView(view, { q: parts.q, range });
                  return view.id;
                }, `${view.name} is changed.`)
              }
            >
              Change “{view.name}”
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
