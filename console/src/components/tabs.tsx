import { Link } from '../router/link.tsx';

export interface Tab {
  /** Its address below the console. */
  readonly path: string;
  readonly label: string;
}

/** The parts of a page. Each has an address of its own. */
export function Tabs({ label, tabs, current }: { label: string; tabs: readonly Tab[]; current: string }) {
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
