import type { SavedView } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useRequest } from '../api/requests.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { Icon } from '../components/icon.tsx';
import { DialogButton } from '../components/overlays.tsx';
import { EmptyState, FailureBox, later, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { queryOfDocument } from '../history/document-queries.ts';
import { historyOf } from '../history/history-view.ts';
import { Link, place } from '../router/router.tsx';
import { knownViews, readViews, targetOfView, writesViews } from './known-views.ts';
import { queryOfView } from './saved-views.ts';
import './views.css';

const EditViews = later(async () => (await import('./view-dialogs.tsx')).EditViews);

/** The saved views of the tenant, below History in the navigation. */
export function ViewsNavigation({ onFollow }: { readonly onFollow: () => void }) {
  const [isEditing, setEditing] = useState(false);
  useRequest(allows(historyAbilities.all) ? 'views' : undefined, readViews);
  const views = knownViews.value ?? [];
  if (views.length === 0) return null;
  const { path, parameters } = place.value;
  const shown = path === 'history' ? parameters.get('view') : null;
  return (
    <div class="views-navigation">
      <ul aria-label="Saved views">
        {views.map(({ id, name }) => (
          <li key={id}>
            <Link
              to={targetOfView(id)}
              class="view-link"
              aria-current={id === shown ? 'true' : undefined}
              title={name}
              onFollow={onFollow}
            >
              <Name text={name} />
            </Link>
          </li>
        ))}
      </ul>
      {writesViews() ? (
        <button type="button" class="view-link views-edit" aria-haspopup="dialog" onClick={() => setEditing(true)}>
          <Icon name="edit" size={13} />
          Edit views
        </button>
      ) : undefined}
      {isEditing ? <EditViews onClose={() => setEditing(false)} /> : undefined}
    </div>
  );
}

interface OpenViewProps {
  readonly id: string;
  /** Shows the view with its query at the moment when it was opened, or renewed. */
  readonly children: (view: SavedView, q: string, renew: () => void) => ComponentChildren;
}

/** Reads a saved view, or says that there is none. */
export function OpenView({ id, children }: OpenViewProps) {
  const [opened, setOpened] = useState(() => Date.now());
  const { value, error, reload } = useRequest(`view ${id}`, readViews);
  // What was saved since then is there already.
  const view = knownViews.value?.find((saved) => saved.id === id);
  if (error !== undefined) return <FailureBox error={error} onRetry={reload} />;
  if (value === undefined) return <Skeleton lines={12} />;
  if (view === undefined) return <NoSuchView id={id} />;
  return <>{children(view, queryOfView(view, opened), () => setOpened(Date.now()))}</>;
}

function NoSuchView({ id }: { readonly id: string }) {
  return (
    <EmptyState icon="history" title="This view is gone" isPage>
      <p>Somebody has deleted it, or the address is wrong.</p>
      <Link to={historyOf(queryOfDocument({ entity: 'annals-view', entityId: id }))}>Who deleted it</Link>
      <Link to={{ path: 'history' }}>All changes</Link>
    </EmptyState>
  );
}

const SaveView = later(async () => (await import('./view-dialogs.tsx')).SaveView);

interface SaveViewButtonProps {
  readonly q: string;
  /** The saved view that the query began as. */
  readonly view: SavedView | undefined;
  /** Whether the service refused the query. */
  readonly disabled: boolean;
}

/** Saves the query with its time under a name. Only those who may write views see it. */
export function SaveViewButton({ q, view, disabled }: SaveViewButtonProps) {
  if (!writesViews()) return null;
  return (
    <DialogButton icon="plus" disabled={disabled} dialog={(close) => <SaveView q={q} view={view} onClose={close} />}>
      Save view
    </DialogButton>
  );
}
