import type { ComponentType } from 'preact';
import { allows } from '../api/session.ts';
import { path } from '../router/location.ts';
import { EmptyState } from './empty-state.tsx';
import { Tabs } from './tabs.tsx';

/** One view of a page that has several. */
export interface View {
  readonly path: string;
  /** Its tab; without one it is reached by links. */
  readonly tab?: string;
  /** The tab that it belongs to. */
  readonly below?: string;
  /** The view is for clients that have one of these. */
  readonly scopes: readonly string[];
  readonly Content: ComponentType;
}

/**
 * The tabs of all views that the client may see, and below them the view of the address. `root` is the address of the
 * page.
 */
export function TabbedViews({ root, label, views }: { root: string; label: string; views: readonly View[] }) {
  const allowed = views.filter(({ scopes }) => allows(...scopes));
  // Without an address the page may be the first one of a session.
  const isFirst = path.value === root || path.value === '';
  const view = isFirst ? allowed[0] : allowed.find((one) => one.path === path.value);
  const tabs = allowed.flatMap(({ path: place, tab }) => (tab === undefined ? [] : [{ path: place, label: tab }]));
  return (
    <>
      <Tabs label={label} tabs={tabs} current={view?.below ?? view?.path ?? ''} />
      {view === undefined ? (
        <EmptyState icon="search" title="There is no such page" isPage>
          <p>The address is wrong, or your client has no scope for it.</p>
        </EmptyState>
      ) : (
        <view.Content key={view.path} />
      )}
    </>
  );
}
