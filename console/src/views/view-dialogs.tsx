import { ApiError, type SavedView } from '@annals/client';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/buttons.tsx';
import { SelectField, TextField } from '../components/forms.tsx';
import { ConfirmButton, Dialog, type DialogAction } from '../components/overlays.tsx';
import { FailureBox } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { tell } from '../components/toasts.ts';
import { timeChoices } from '../history/time-choices.ts';
import { navigate } from '../router/router.tsx';
import { changeView, knownViews, moveView, readViews, targetOfView } from './known-views.ts';
import { divided, rangeText } from './saved-views.ts';

/** Renames the saved views, orders them, and deletes them. */
export function EditViews({ onClose }: { readonly onClose: () => void }) {
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [renamed, setRenamed] = useState<string>();
  const views = knownViews.value ?? [];

  const change = async (write: () => Promise<void>) => {
    setBusy(true);
    setFailure(undefined);
    try {
      await write();
      setRenamed(undefined);
    } catch (error) {
      setFailure(error);
    }
    // Shows the current views, also after a conflict.
    await readViews().catch(setFailure);
    setBusy(false);
  };
  return (
    <Dialog title="Saved views" onClose={onClose}>
      {failure === undefined ? undefined : isConflict(failure) ? (
        <p class="note" role="alert">
          Somebody else has changed this view. The list below is current.
        </p>
      ) : (
        <FailureBox error={failure} />
      )}
      <ol class="views-edited stack-small" aria-busy={isBusy}>
        {views.map((view, index) => (
          <li key={view.id}>
            {renamed === view.id ? (
              <Rename
                view={view}
                isBusy={isBusy}
                onRename={(name) => void change(() => changeView(view, { name }))}
                onCancel={() => setRenamed(undefined)}
              />
            ) : (
              <>
                <span class="view-words">
                  <Name as="strong" text={view.name} />
                  <span class="muted">
                    <code>
                      <Name text={view.q} />
                    </code>{' '}
                    {rangeText(view.range)}
                  </span>
                </span>
                <span class="row-actions">
                  <Button
                    kind="quiet"
                    icon="up"
                    aria-label={`Move ${view.name} up`}
                    disabled={isBusy || index === 0}
                    onClick={() => void change(() => moveView(views, index, index - 1))}
                  />
                  <Button
                    kind="quiet"
                    icon="down"
                    aria-label={`Move ${view.name} down`}
                    disabled={isBusy || index === views.length - 1}
                    onClick={() => void change(() => moveView(views, index, index + 1))}
                  />
                  <Button
                    kind="quiet"
                    icon="edit"
                    aria-label={`Rename ${view.name}`}
                    disabled={isBusy}
                    onClick={() => setRenamed(view.id)}
                  />
                  <ConfirmButton
                    kind="quiet"
                    icon="remove"
                    aria-label={`Delete ${view.name}`}
                    disabled={isBusy}
                    ask={{
                      title: 'Delete the view?',
                      run: async () => {
                        await annals().views.delete(view.id);
                        await readViews();
                      },
                      body: (
                        <p>
                          <Name text={view.name} /> is gone for all who use this tenant. The changes that it shows stay.
                        </p>
                      ),
                    }}
                  />
                </span>
              </>
            )}
          </li>
        ))}
      </ol>
      {views.length === 0 ? <p class="muted">There are no saved views.</p> : undefined}
    </Dialog>
  );
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.type === 'conflict_resource';
}

interface RenameProps {
  readonly view: SavedView;
  readonly isBusy: boolean;
  readonly onRename: (name: string) => void;
  readonly onCancel: () => void;
}

function Rename({ view, isBusy, onRename, onCancel }: RenameProps) {
  const [name, setName] = useState(view.name);
  return (
    <form
      class="view-rename"
      onSubmit={(event) => {
        event.preventDefault();
        onRename(name.trim());
      }}
    >
      <ViewNameField name={name} onName={setName} />
      <div class="page-actions">
        <Button kind="primary" type="submit" disabled={isBusy || name.trim() === ''}>
          Rename
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  );
}

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
  const ranges = [...new Set([parts.range, ...timeChoices.map((choice) => choice.range)])];

  const save = async (write: () => Promise<string>, words: string) => {
    const id = await write();
    await readViews();
    tell(words);
    navigate(targetOfView(id));
  };
  const create = () =>
    save(
      async () => (await annals().views.create({ name: name.trim(), q: parts.q, range })).id,
      `${name.trim()} is saved. Its address can be shared.`,
    );
  const actions: DialogAction[] = [{ label: 'Save', isReady: name.trim() !== '', run: create }];
  if (view !== undefined) {
    const change = async () => {
      await changeView(view, { q: parts.q, range });
      return view.id;
    };
    const run = () => save(change, `${view.name} is changed.`);
    actions.unshift({ label: `Change “${view.name}”`, kind: 'plain', run });
  }
  return (
    <Dialog title="Save view" onClose={onClose} actions={actions}>
      <p>{parts.q === '' ? 'All changes' : <code>{parts.q}</code>}</p>
      <ViewNameField name={name} onName={setName} />
      <SelectField
        label="Time"
        hint="A time such as the last 7 days moves on with the clock."
        choices={ranges.map((choice) => [choice, rangeText(choice)] as const)}
        value={range}
        onChoose={setRange}
      />
      <p class="muted">All who may read the history of this tenant see the view.</p>
    </Dialog>
  );
}

/** Characters, as the service counts them. */
const maxName = 200;

function ViewNameField({ name, onName }: { readonly name: string; readonly onName: (name: string) => void }) {
  const input = useRef<HTMLInputElement>(null);
  // In the same turn as it is drawn: a key that is pressed between the two would be lost.
  useLayoutEffect(() => {
    input.current?.focus();
    input.current?.select();
  }, []);
  return (
    <TextField
      kind="name"
      label="Name"
      // A dialog gives the focus to its first button when it opens, unless something in it asks for it.
      input={{ ref: input, autofocus: true, maxLength: maxName }}
      value={name}
      onText={onName}
    />
  );
}
