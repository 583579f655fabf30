import { computed, signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

/** Where the page is: the address below the console's base, and its parameters. */
interface Place {
  /** Without slashes at its ends: `history`, or empty for the first page. */
  readonly path: string;
  readonly parameters: URLSearchParams;
}

/** The path of `<base href>`, which the service writes; it ends with a slash. */
export const basePath = new URL(document.baseURI).pathname;

/** Views that stood elsewhere: addresses of before lead to them. */
const moved: Readonly<Record<string, string>> = {
  'data/accesses': 'security/accesses',
  'data/proof': 'security/proof',
};

/** The address that the browser shows now. Every view is one, so that it can be shared. */
export const place = signal<Place>(readPlace());

export const path = computed(() => place.value.path);

addEventListener('popstate', () => {
  place.value = readPlace();
  restoreScroll();
});

/** What the browser keeps with each address that it has shown. */
interface Kept {
  /** Pixels. */
  readonly scroll: number;
}

function kept(): Kept | undefined {
  const state: Partial<Kept> | null = history.state;
  return typeof state?.scroll === 'number' ? { scroll: state.scroll } : undefined;
}

/** Milliseconds without scrolling after which the place is kept: browsers limit how often it may be written. */
const scrollPause = 300;
/** Milliseconds in which a page comes back to its place while its content arrives. */
const restoringTime = 15_000;

let endRestoring: (() => void) | undefined;
let scrollTimer: ReturnType<typeof setTimeout> | undefined;

function keepScroll(): void {
  clearTimeout(scrollTimer);
  if (endRestoring !== undefined || kept()?.scroll === scrollY) return;
  history.replaceState({ scroll: scrollY } satisfies Kept, '');
}

/** Scrolls to where the reader was, and there again while content arrives, until they do something themselves. */
function restoreScroll(): void {
  endRestoring?.();
  clearTimeout(scrollTimer);
  const { scroll } = kept() ?? {};
  if (scroll === undefined) return;
  const ending = new AbortController();
  const settle = () => scrollTo({ top: scroll, behavior: 'instant' });
  const watch = new ResizeObserver(settle);
  watch.observe(document.body);
  const timer = setTimeout(() => endRestoring?.(), restoringTime);
  endRestoring = () => {
    endRestoring = undefined;
    clearTimeout(timer);
    watch.disconnect();
    ending.abort();
  };
  for (const act of ['wheel', 'touchstart', 'pointerdown', 'keydown'])
    addEventListener(act, () => endRestoring?.(), { capture: true, passive: true, signal: ending.signal });
  settle();
}

// The browser itself would scroll before the content is there.
history.scrollRestoration = 'manual';
addEventListener('scroll', () => {
  clearTimeout(scrollTimer);
  scrollTimer = setTimeout(keepScroll, scrollPause);
});
addEventListener('pagehide', keepScroll);
restoreScroll();

/** What an address is made of; parameters that are undefined or empty are left out. */
export interface Target {
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string | number | undefined>> | undefined;
}

/** The address of a view, for `href`. */
export function addressOf({ path: target, parameters = {} }: Target): string {
  const written = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') written.set(name, String(value));
  }
  const query = written.toString();
  return `${basePath}${target}${query === '' ? '' : `?${query}`}`;
}

/** Shows a view. With `replace` the way back does not lead to the one before it. */
export function navigate(target: Target, { replace = false }: { replace?: boolean } = {}): void {
  const address = addressOf(target);
  if (address === location.pathname + location.search) return;
  if (replace) history.replaceState(history.state, '', address);
  else {
    endRestoring?.();
    keepScroll();
    const isSamePage = target.path === place.value.path;
    history.pushState({ scroll: isSamePage ? scrollY : 0 } satisfies Kept, '', address);
    if (!isSamePage) scrollTo({ top: 0, behavior: 'instant' });
  }
  place.value = readPlace();
}

/** Changes some parameters of the address and keeps the others. */
export function setParameters(
  changes: Readonly<Record<string, string | number | undefined>>,
  options?: { replace?: boolean },
): void {
  navigate({ path: place.value.path, parameters: parametersWith(changes) }, options);
}

/** The parameters of the address with some changes, for a link that keeps the others. */
export function parametersWith(changes: NonNullable<Target['parameters']>): NonNullable<Target['parameters']> {
  return { ...Object.fromEntries(place.value.parameters), ...changes };
}

function readPlace(): Place {
  const { pathname, search } = location;
  const below = (pathname.startsWith(basePath) ? pathname.slice(basePath.length) : '').replace(/^\/+|\/+$/g, '');
  return { path: moved[below] ?? below, parameters: new URLSearchParams(search) };
}

interface LinkProps {
  readonly to: Target;
  readonly children: ComponentChildren;
  readonly class?: string | undefined;
  readonly title?: string | undefined;
  readonly 'aria-current'?: 'page' | 'true' | undefined;
  readonly 'aria-label'?: string | undefined;
  readonly onFollow?: (() => void) | undefined;
}

/** A link to a view of the console. Opened in another tab it is an ordinary address. */
export function Link({ to, children, onFollow, ...rest }: LinkProps) {
  const follow = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(to);
    onFollow?.();
  };
  return (
    <a {...rest} href={addressOf(to)} onClick={follow}>
      {children}
    </a>
  );
}
