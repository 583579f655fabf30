import { useEffect, useErrorBoundary, useRef, useState } from 'preact/hooks';
import { useCode } from '../api/requests.ts';
import { allows, changeTenant, isOutdated, type Session, session, signOut } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { Icon } from '../components/icon.tsx';
import { heading, Segments } from '../components/page.tsx';
import { EmptyState, FailureBox, Skeleton } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { chooseTimeZone, timeZone } from '../components/times.ts';
import { tellFailure } from '../components/toasts.ts';
import { Find, FindButton } from '../find/find-button.tsx';
import { basePath, Link, path } from '../router/router.tsx';
import { ViewsNavigation } from '../views/views.tsx';
import { type Page, pages } from './pages.ts';
import './shell.css';

/** The frame of every page: the navigation, the account, and notes for all pages. */
export function Shell() {
  const [menuOpen, setMenuOpen] = useState(false);
  const main = useRef<HTMLElement>(null);
  const allowed = pages.filter(({ scopes }) => allows(...scopes));
  const first = path.value.split('/')[0] ?? '';
  const page = first === '' ? allowed[0] : allowed.find((candidate) => candidate.path === first);

  useEffect(() => {
    const names = new Set([heading.value, page?.title ?? '', 'Annals']);
    document.title = [...names].filter((name) => name !== '').join(' · ');
  }, [page, heading.value]);

  return (
    <div class="shell">
      <a
        class="skip-link"
        href={`${location.pathname}${location.search}#main`}
        onClick={(event) => skipTo(event, main.current)}
      >
        Skip to the page
      </a>
      <header class={`sidebar${menuOpen ? ' open' : ''}`}>
        <div class="sidebar-top">
          <Brand />
          <FindButton />
          <Button
            kind="quiet"
            icon={menuOpen ? 'close' : 'menu'}
            class="menu-button"
            aria-label="Menu"
            aria-expanded={menuOpen}
            onClick={() => setMenuOpen(!menuOpen)}
          />
        </div>
        <div class="sidebar-rest">
          <Navigation pages={allowed} current={page} onFollow={() => setMenuOpen(false)} />
          <Account />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {isOutdated.value ? <OutdatedNote /> : undefined}
        {page === undefined ? <NoSuchPage /> : <CurrentPage key={page.path} page={page} />}
      </main>
      <Find
        onOpened={() => {
          setMenuOpen(false);
          main.current?.focus();
        }}
      />
    </div>
  );
}

function skipTo(event: MouseEvent, main: HTMLElement | null): void {
  event.preventDefault();
  main?.focus();
}

export function Brand() {
  return (
    <span class="brand">
      <svg width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="7" class="brand-ground" />
        <path d="M9 23 16 8l7 15" class="brand-line" />
        <path d="M12 18.5h8" class="brand-line" />
        <circle cx="16" cy="18.5" r="2.6" class="brand-dot" />
      </svg>
      Annals
    </span>
  );
}

interface NavigationProps {
  readonly pages: readonly Page[];
  readonly current: Page | undefined;
  readonly onFollow: () => void;
}

function Navigation({ pages: allowed, current, onFollow }: NavigationProps) {
  return (
    <nav aria-label="Console">
      <ul>
        {allowed
          .filter(({ inNavigation }) => inNavigation)
          .map((page) => (
            <li key={page.path}>
              <Link
                to={{ path: page.path }}
                aria-current={page === current ? 'page' : undefined}
                onFollow={onFollow}
                class="navigation-link"
              >
                <Icon name={page.icon} />
                {page.title}
              </Link>
              {page.path === 'history' ? <ViewsNavigation onFollow={onFollow} /> : undefined}
            </li>
          ))}
      </ul>
    </nav>
  );
}

function Account() {
  const signedIn = session.value;
  if (signedIn === undefined) return null;
  const leave = () => void signOut().catch(tellFailure);
  return (
    <div class="account">
      <Segments
        label="Times are shown in"
        choices={[
          ['local', 'Local time'],
          ['utc', 'UTC'],
        ]}
        chosen={timeZone.value}
        onChoose={chooseTimeZone}
      />
      <a
        class="navigation-link"
        href={new URL('../docs/guides', new URL(basePath, location.origin)).href}
        target="_blank"
        rel="noreferrer"
      >
        <Icon name="help" />
        Guides
      </a>
      <div class="account-row">
        <div class="account-names">
          <TenantOf session={signedIn} />
          <Name class="muted" text={signedIn.name} />
        </div>
        <Button kind="quiet" icon="signOut" aria-label="Sign out" title="Sign out" onClick={leave} />
      </div>
    </div>
  );
}

/** The tenant; of a person who may enter several, the choice among them. */
function TenantOf({ session: { tenant, tenants = [] } }: { readonly session: Session }) {
  if (tenants.length < 2) return <Name as="strong" text={tenant} />;
  const change = async (choice: HTMLSelectElement) => {
    try {
      await changeTenant(choice.value);
    } catch (error) {
      // The person stays where they were, and so does what is shown.
      choice.value = tenant;
      tellFailure(error);
    }
  };
  return (
    <select
      class="control tenant-choice"
      aria-label="Tenant"
      value={tenant}
      onChange={(event) => void change(event.currentTarget)}
    >
      {tenants.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function OutdatedNote() {
  return (
    <div class="note" role="status">
      <span>There is a newer version of the console.</span>
      <Button onClick={() => location.reload()}>Reload</Button>
    </div>
  );
}

function NoSuchPage() {
  return (
    <EmptyState icon="search" title="There is no such page" isPage>
      <p>The address is wrong, or your client has no scope for this page.</p>
      <Link to={{ path: '' }}>Go to the first page</Link>
    </EmptyState>
  );
}

/** Fetches the code of a page and shows it. A fault in it leaves the rest of the console as it is. */
function CurrentPage({ page }: { readonly page: Page }) {
  const { code: Content, error } = useCode(page.load);
  const [fault] = useErrorBoundary();
  const failure: unknown = fault ?? error;
  if (failure !== undefined) return <FailureBox error={failure} />;
  return Content === undefined ? <Skeleton /> : <Content />;
}
