import { signal } from '@preact/signals';
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { allows } from '../api/session.ts';
import { Link, path } from '../router/router.tsx';
import { EmptyState, LoadingLine } from './states.tsx';
import { Name } from './text.tsx';

interface PageHeaderProps {
  readonly title: ComponentChildren;
  /** A line below the title. */
  readonly lead?: ComponentChildren;
  /** Buttons and switches at the right. */
  readonly children?: ComponentChildren;
}

/** The heading of what is shown, for the title of the window; empty without one. */
export const heading = signal('');

export function PageHeader({ title, lead, children }: PageHeaderProps) {
  const shown = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.value = shown.current?.textContent ?? '';
  }, [title]);
  useEffect(
    () => () => {
      heading.value = '';
    },
    [],
  );
  return (
    <header class="page-header">
      <div>
        <h1 ref={shown}>{title}</h1>
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

/** The tabs of all views that the client may see, and the view of the address. `root`: the address of the page. */
export function TabbedViews({ root, label, views }: { root: string; label: string; views: readonly View[] }) {
  const allowed = views.filter(({ scopes }) => allows(...scopes));
  // Without an address the page may be the first one of a session.
  const isFirst = path.value === root || path.value === '';
  const view = isFirst ? allowed[0] : allowed.find((candidate) => candidate.path === path.value);
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

interface FactProps {
  readonly label: string;
  readonly class?: string | undefined;
  /** A text from data, in place of children. */
  readonly text?: string | undefined;
  readonly children?: ComponentChildren;
}

/** A term with its value in a list of facts. Without a value it is left out. */
export function Fact({ label, class: name, text, children }: FactProps) {
  const value = text === undefined ? children : <Name text={text} />;
  if (value === undefined || value === null || value === false) return null;
  return (
    <>
      <dt>{label}</dt>
      <dd class={name}>{value}</dd>
    </>
  );
}

interface CardProps {
  readonly title: ComponentChildren;
  /** Right of the title. */
  readonly aside?: ComponentChildren;
  /** Classes of the card and of its body. */
  readonly class?: string;
  readonly body?: string;
  readonly isLoading?: boolean;
  readonly 'aria-label'?: string;
  readonly 'aria-live'?: 'polite';
  readonly children: ComponentChildren;
}

/** A part of a page under a heading. */
export function Card({ title, aside, class: name = '', body = '', isLoading, children, ...rest }: CardProps) {
  return (
    <section class={`card ${name}`} aria-busy={isLoading} {...rest}>
      {isLoading === undefined ? undefined : <LoadingLine active={isLoading} />}
      {aside === undefined ? (
        <h2 class="card-header">{title}</h2>
      ) : (
        <div class="card-header">
          <h2>{title}</h2>
          {aside}
        </div>
      )}
      <div class={`card-body ${body}`}>{children}</div>
    </section>
  );
}

interface SegmentsProps<Choice extends string> {
  /** What is chosen, for those who do not see it. */
  readonly label: string;
  readonly class?: string;
  readonly choices: readonly (readonly [choice: Choice, words: string])[];
  readonly chosen: Choice;
  readonly onChoose: (choice: Choice) => void;
}

/** A choice among a few, all of which are shown. */
export function Segments<Choice extends string>({
  label,
  class: name,
  choices,
  chosen,
  onChoose,
}: SegmentsProps<Choice>) {
  return (
    <fieldset class={`segments ${name ?? ''}`}>
      <legend class="visually-hidden">{label}</legend>
      {choices.map(([choice, words]) => (
        <button key={choice} type="button" aria-pressed={choice === chosen} onClick={() => onChoose(choice)}>
          {words}
        </button>
      ))}
    </fieldset>
  );
}
