import { ApiError, type SavedView } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { Dialog } from '../components/dialog.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { Name } from '../components/name.tsx';
import { changeView, moveView } from './change-views.ts';
import { ViewNameField } from './view-name-field.tsx';
import { rangeText } from './view-range.ts';
import { knownViews, readViews } from './views.ts';

/** Renames the saved views, orders them, and deletes them. */
export function EditViews({ onClose }: { readonly onClose: () => void }) {
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const [renamed, setRenamed] = useState<string>();
  const [deleted, setDeleted] = useState<SavedView>();
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
    // Shows the views as they are now, also where somebody else was faster.
    await readViews().catch(setFailure);
    setBusy(false);
  };
  return (
    <Dialog title="Saved views" onClose={onClose}>
      {failure === undefined ? undefined : isConflict(failure) ? (
        <p class="note" role="alert">
          Somebody else has changed this view meanwhile. The list below is as it is now.
        </p>
      ) : (
        <FailureBox error={failure} />
      )}
      <ol class="views-edited" aria-busy={isBusy}>
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
                  <strong>
                    <Name text={view.name} />
                  </strong>
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
                  <Button
                    kind="quiet"
                    icon="remove"
                    aria-label={`Delete ${view.name}`}
                    disabled={isBusy}
                    onClick={() => setDeleted(view)}
                  />
                </span>
              </>
            )}
          </li>
        ))}
      </ol>
      {views.length === 0 ? <p class="muted">There are no saved views any more.</p> : undefined}
      {deleted === undefined ? undefined : (
        <ConfirmDialog
          title="Delete the view?"
          action="Delete"
          onClose={() => setDeleted(undefined)}
          onConfirm={async () => {
            await annals().views.delete(deleted.id);
            await readViews();
          }}
        >
          <p>
            <Name text={deleted.name} /> is gone for everybody who uses this tenant. The changes that it shows stay.
          </p>
        </ConfirmDialog>
      )}
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
