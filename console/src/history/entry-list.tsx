import { useEffect, useRef } from 'preact/hooks';
import type { Entry } from '../api/history-reads.ts';
import { ChangeTypeMark } from '../components/change-type.tsx';
import { isField } from '../components/is-field.ts';
import { Name } from '../components/name.tsx';
import { Time } from '../components/time.tsx';
import { timeText } from '../components/time-text.ts';
import { Link } from '../router/link.tsx';
import { place, setParameters, type Target } from '../router/location.ts';
import { PathSummary } from './path-summary.tsx';
import './entry-list.css';

interface EntryListProps {
  readonly entries: readonly Entry[];
  /** The ref of the entry whose detail is open. */
  readonly open: string | undefined;
}

/** Entries by day, newest first. `j` and `k` move, Enter opens the detail at the side. */
export function EntryList({ entries, open }: EntryListProps) {
  const list = useRef<HTMLDivElement>(null);
  useMoveKeys(list, entries, open);
  return (
    <div ref={list} class="entry-list">
      {daysOf(entries).map(([day, ofDay]) => (
        <section key={day} aria-label={day}>
          <h2 class="entry-day">{day}</h2>
          <ol>
            {ofDay.map((entry) => (
              <EntryRow key={entry.ref} entry={entry} isOpen={entry.ref === open} />
            ))}
          </ol>
        </section>
      ))}
    </div>
  );
}

function daysOf(entries: readonly Entry[]): [string, Entry[]][] {
  const days = new Map<string, Entry[]>();
  for (const entry of entries) {
    const day = timeText(entry.at, 'weekday');
    days.set(day, [...(days.get(day) ?? []), entry]);
  }
  return [...days];
}

/** The address of an entry's detail, beside the list as it is. */
function detailOf({ ref }: Entry): Target {
  const { path, parameters } = place.value;
  return { path, parameters: { ...Object.fromEntries(parameters), entry: ref } };
}

function EntryRow({ entry, isOpen }: { readonly entry: Entry; readonly isOpen: boolean }) {
  return (
    <li class={`entry-row${isOpen ? ' open' : ''}`}>
      <Link to={detailOf(entry)} class="entry-link" aria-current={isOpen ? 'true' : undefined}>
        <ChangeTypeMark type={entry.type} short />
        <span class="entry-document">
          <span class="entry-entity">
            <Name text={entry.entity} />
          </span>{' '}
          <strong>
            <Name text={entry.entityId} />
          </strong>{' '}
          {entry.name === undefined ? undefined : (
            <span class="muted">
              <Name text={entry.name} />
            </span>
          )}
        </span>
        <span class="entry-actor">
          <Name text={entry.actor} />
        </span>
        <span class="entry-time">
          <Time at={entry.at} detail="clock" />
        </span>
        <span class="entry-paths">
          <PathSummary entry={entry} />
        </span>
      </Link>
    </li>
  );
}

function useMoveKeys(
  list: { readonly current: HTMLElement | null },
  entries: readonly Entry[],
  open: string | undefined,
): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.key !== 'j' && event.key !== 'k') || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isField(event.target) || document.querySelector('dialog[open]') !== null) return;
      const links = [...(list.current?.querySelectorAll<HTMLElement>('.entry-link') ?? [])];
      const focused = links.findIndex((link) => link.matches(':focus'));
      const current = focused >= 0 ? focused : entries.findIndex(({ ref }) => ref === open);
      const next = Math.min(links.length - 1, Math.max(0, current + (event.key === 'j' ? 1 : -1)));
      links[next]?.focus();
      links[next]?.scrollIntoView({ block: 'nearest' });
      // With the detail open, moving shows the next one.
      const entry = entries[next];
      if (open !== undefined && entry !== undefined) setParameters({ entry: entry.ref }, { replace: true });
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [entries, open]);
}
