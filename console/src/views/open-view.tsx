import type { SavedView } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { useRequest } from '../api/use-request.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import { Skeleton } from '../components/loading.tsx';
import { queryOfDocument } from '../history/document-queries.ts';
import { historyOf } from '../history/history-view.ts';
import { Link } from '../router/link.tsx';
import { queryOfView } from './view-range.ts';
import { knownViews, readViews } from './views.ts';

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
  const view = knownViews.value?.find((one) => one.id === id);
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
