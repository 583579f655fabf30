import type { ComponentChildren, ComponentType } from 'preact';
import { allows } from '../api/session.ts';
import { Link, path } from '../router/router.tsx';
import { Button } from './buttons.tsx';
import { countText } from './numbers.ts';
import { EmptyState } from './states.tsx';

interface PageHeaderProps {
  readonly title: ComponentChildren;
  /** A line below the title. */
  readonly lead?: ComponentChildren;
  /** Buttons and switches at the right. */
  readonly children?: ComponentChildren;
}

export function PageHeader({ title, lead, children }: PageHeaderProps) {
  return (
    <header class="page-header">
      <div>
        <h1>{title}</h1>
        {lead === undefined ? undefined : <p class="muted">{lead}</p>}
      </div>
      {children === undefined ? undefined : <div class="page-actions">{children}</div>}
    </header>
  );
}

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

interface Tab {
  /** Its address below the console. */
  readonly path: string;
  readonly label: string;
}

/** The parts of a page. Each has an address of its own. */
function Tabs({ label, tabs, current }: { label: string; tabs: readonly Tab[]; current: string }) {
  if (tabs.length < 2) return null;
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <Link key={tab.path} to={{ path: tab.path }} aria-current={tab.path === current ? 'page' : undefined}>
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}

interface TableScrollProps {
  /** What is in it, for those who do not see it. */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** A table that scrolls sideways on a narrow screen. The keyboard reaches it, so that it scrolls without a pointer. */
export function TableScroll({ label, children }: TableScrollProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <section class="table-scroll" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

interface PagerProps {
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  readonly onPage: (page: number) => void;
}

/** The pages of a list whose total is known. */
export function Pager({ page, pages, onPage }: PagerProps) {
  if (pages < 2 && page === 1) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="previous" aria-label="Previous page" disabled={page <= 1} onClick={() => onPage(page - 1)} />
      <span class="number">
        Page {countText(page)} of {countText(pages)}
      </span>
      <Button icon="next" aria-label="Next page" disabled={page >= pages} onClick={() => onPage(page + 1)} />
    </nav>
  );
}

interface CursorPagerProps {
  readonly onPrevious: (() => void) | undefined;
  readonly onNext: (() => void) | undefined;
}

/** A list that goes on by cursors. A direction without anything more is undefined. */
export function CursorPager({ onPrevious, onNext }: CursorPagerProps) {
  if (onPrevious === undefined && onNext === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <Button icon="previous" disabled={onPrevious === undefined} onClick={() => onPrevious?.()}>
        Previous
      </Button>
      <Button icon="next" class="icon-last" disabled={onNext === undefined} onClick={() => onNext?.()}>
        Next
      </Button>
    </nav>
  );
}
