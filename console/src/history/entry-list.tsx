import { type JsonValue, stringifyJson } from '@annals/client/json';
import { useEffect, useRef, useState } from 'preact/hooks';
import { countEntries, type Entry, type PathChange } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { isObjectList } from '../compare/list-table.tsx';
import { Button } from '../components/buttons.tsx';
import { part } from '../components/lazy-list.tsx';
import { hasMarks, placeOfMark } from '../components/marks.ts';
import { counted, countText } from '../components/numbers.ts';
import { isDialogOpen, isField } from '../components/overlays.tsx';
import { EmptyState } from '../components/states.tsx';
import { Name, Text } from '../components/text.tsx';
import { timeText } from '../components/times.ts';
import { ChangeTypeMark, Time } from '../components/values.tsx';
import { hasFromBound, withTime } from '../query-text/edit-query.ts';
import { Link, place, setParameters, type Target } from '../router/router.tsx';
import { EntryGroupItem } from './entry-group-item.tsx';
import { type EntryGroup, groupEntries, groupsOf, isGrouped } from './entry-groups.ts';
import { allTime } from './time-choices.ts';
import { Who } from './who.tsx';
import './entry-list.css';

interface EntryListProps {
  readonly entries: readonly Entry[];
  /** The ref of the entry whose detail is open. */
  readonly open: string | undefined;
}

/** Entries by day, newest first. `j` and `k` move, Enter opens the detail at the side, or a group. */
export function EntryList({ entries, open }: EntryListProps) {
  const list = useRef<HTMLDivElement>(null);
  useMoveKeys(list, open);
  const days = daysOf(entries).map(([day, ofDay]) => ({ day, ofDay, groups: groupsOf(ofDay) }));
  const allGroups = days.flatMap(({ groups }) => groups);
  const { isGroupOpen, toggle } = useOpenGroups(allGroups, open);
  const rowsOf = (some: readonly Entry[]) =>
    some.map((entry) => <EntryRow key={entry.ref} entry={entry} isOpen={entry.ref === open} />);
  const itemOf = (group: EntryGroup) =>
    group.correlationId === undefined ? (
      rowsOf(group.entries)
    ) : (
      <EntryGroupItem key={group.key} group={group} isOpen={isGroupOpen(group)} onToggle={() => toggle(group)}>
        {rowsOf(group.entries)}
      </EntryGroupItem>
    );
  return (
    <div ref={list} class="entry-list">
      {allGroups.some(({ correlationId }) => correlationId !== undefined) ? <GroupSwitch /> : undefined}
      {days.map(({ day, ofDay, groups }) => (
        <section key={day} aria-label={day}>
          <h2 class="entry-day">{day}</h2>
          <ol>{isGrouped.value ? groups.map(itemOf) : rowsOf(ofDay)}</ol>
        </section>
      ))}
    </div>
  );
}

/** It lies over the line of the first day, so that nothing moves when it comes. */
function GroupSwitch() {
  return (
    <label class="group-switch" title="Shows the changes of one request or transaction as one line that opens">
      <input
        type="checkbox"
        checked={isGrouped.value}
        onChange={(event) => groupEntries(event.currentTarget.checked)}
      />{' '}
      Group<span class="group-switch-more"> by correlation</span>
    </label>
  );
}

/** Which groups are open: those that the reader has opened, and the one of the entry whose detail is shown. */
function useOpenGroups(groups: readonly EntryGroup[], open: string | undefined) {
  const [chosen, setChosen] = useState<ReadonlyMap<string, boolean>>(new Map());
  const choose = (key: string, opens: boolean) => setChosen((before) => new Map(before).set(key, opens));
  const current = groups.find(({ entries }) => entries.some(({ ref }) => ref === open))?.key;
  const isGroupOpen = ({ key }: EntryGroup) => chosen.get(key) ?? key === current;
  // It stays open when the detail is closed.
  useEffect(() => {
    if (current !== undefined && !chosen.has(current)) choose(current, true);
  }, [current]);
  return { isGroupOpen, toggle: (group: EntryGroup) => choose(group.key, !isGroupOpen(group)) };
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
    <li class={`entry-row${isOpen ? ' open' : ''}`} data-ref={entry.ref}>
      <Link to={detailOf(entry)} class="entry-link" aria-current={isOpen ? 'true' : undefined}>
        <ChangeTypeMark type={entry.type} short />
        <span class="entry-document">
          <span class="entry-entity">
            <Name text={entry.entity} />
          </span>{' '}
          <strong>
            <Name text={entry.entityId} />
          </strong>{' '}
          {entry.name === undefined ? undefined : <Name class="muted" text={entry.name} />}
        </span>
        <span class="entry-time">
          <Time at={entry.at} detail="clock" />
        </span>
        <span class="entry-paths">
          <PathSummary entry={entry} />
        </span>
      </Link>
      <span class="entry-actor">
        <Who entry={entry} />
      </span>
    </li>
  );
}

function useMoveKeys(list: { readonly current: HTMLElement | null }, open: string | undefined): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.key !== 'j' && event.key !== 'k') || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isField(event.target) || isDialogOpen()) return;
      const links = [...(list.current?.querySelectorAll<HTMLElement>('.entry-link, .entry-group-toggle') ?? [])];
      const focused = links.findIndex((link) => link.matches(':focus'));
      const current = focused >= 0 ? focused : links.findIndex((link) => open !== undefined && refOf(link) === open);
      const next = Math.min(links.length - 1, Math.max(0, current + (event.key === 'j' ? 1 : -1)));
      links[next]?.focus();
      links[next]?.scrollIntoView({ block: 'nearest' });
      // With the detail open, moving shows the next one.
      const entry = refOf(links[next]);
      if (open !== undefined && entry !== undefined) setParameters({ entry }, { replace: true });
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [open]);
}

/** The ref of the entry of a row; undefined for the heading of a group. */
function refOf(link: HTMLElement | undefined): string | undefined {
  return link?.closest<HTMLElement>('.entry-row')?.dataset.ref;
}

/** Paths that a line has room for. */
const shown = 3;
/** Characters of a value on a line. */
const maxLength = 48;

/** Strings that keep their quotes on a line, since without them they would read as another value. */
const otherValue = /^(?:-?\d|[[{"]|(?:true|false|null)$)/;

/** What an entry changed, on one line. */
export function PathSummary({ entry }: { readonly entry: Entry }) {
  const { type, paths } = entry;
  if (paths.size === 0) return <span class="muted">no fields</span>;
  const found = foundPaths(paths);
  if (type !== 'update' && found.length === 0) return <span class="muted">{counted(paths.size, 'field')}</span>;
  const first = found.length > 0 ? found : part(paths, 0, shown);
  return (
    <>
      {first.map(([path, change]) => (
        <span key={path} class="path-change">
          <bdi class="path-name">
            <Text text={path === '' ? '(whole document)' : path} />
          </bdi>{' '}
          <Change change={change} isCut={entry.cut.has(path)} />
        </span>
      ))}
      {paths.size > first.length ? (
        <span class="path-more">+{countText(paths.size - first.length)} more</span>
      ) : undefined}
    </>
  );
}

/** The first paths with a text that is marked. */
function foundPaths(paths: Entry['paths']): (readonly [string, PathChange])[] {
  if (!hasMarks()) return [];
  const isFound = (value: JsonValue | undefined) =>
    value !== undefined && placeOfMark(typeof value === 'string' ? value : stringifyJson(value)) >= 0;
  return [...paths].filter(([, { before, after }]) => isFound(before) || isFound(after)).slice(0, shown);
}

function Change({ change: { before, after }, isCut }: { readonly change: PathChange; readonly isCut: boolean }) {
  const [was, is] = [before, after].map((side) => listOf(side, isCut));
  if (was !== undefined && is !== undefined && was === is) return <span class="muted">list changed</span>;
  return (
    <>
      {before === undefined ? undefined : (
        <del>
          <ShortValue value={before} isCut={isCut} />
        </del>
      )}
      {before === undefined || after === undefined ? ' ' : <span aria-hidden="true"> → </span>}
      {after === undefined ? undefined : (
        <ins>
          <ShortValue value={after} isCut={isCut} />
        </ins>
      )}
    </>
  );
}

/** A list of objects in words; undefined for other values. One that was cut to a text has no count. */
function listOf(value: JsonValue | undefined, isCut: boolean): string | undefined {
  if (isObjectList(value)) return counted(value.length, 'element');
  return isCut && typeof value === 'string' && value.startsWith('[{') ? 'a list' : undefined;
}

function ShortValue({ value, isCut }: { readonly value: JsonValue; readonly isCut: boolean }) {
  const list = listOf(value, isCut);
  if (list !== undefined) return <>{list}</>;
  const isPlain = typeof value === 'string' && value !== '' && !otherValue.test(value);
  const text = isPlain ? value : stringifyJson(value);
  const isLong = text.length > maxLength;
  // What was searched for is in sight.
  const start = isLong ? Math.max(0, placeOfMark(text) - maxLength / 4) : 0;
  const end = start + maxLength;
  return (
    <bdi>
      <Text text={isLong ? `${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}` : text} />
      {isCut && !isLong ? '…' : ''}
    </bdi>
  );
}

/** Says why nothing matches, and leads to where something does. */
export function EmptyHistory({ q, onQuery }: { readonly q: string; readonly onQuery: (q: string) => void }) {
  const everything = withTime(q, { from: allTime });
  const { value: older } = useRequest(everything, (signal) => countEntries(everything, signal));
  const bounded = hasFromBound(q);
  return (
    <EmptyState icon="history" title="No changes match">
      <p>
        {bounded
          ? 'Nothing in this time matches the query.'
          : 'A query without a beginning looks at the last 30 days. Nothing in them matches.'}
        {older === 0 ? ' Nothing older or newer matches either. Names are compared with upper and lower case.' : ''}
      </p>
      {older !== undefined && older > 0 ? (
        <Button kind="primary" onClick={() => onQuery(everything)}>
          Show {counted(older, 'change')} of all time
        </Button>
      ) : undefined}
      {q === '' ? undefined : <Button onClick={() => onQuery('')}>Clear the query</Button>}
    </EmptyState>
  );
}
