import { useEffect, useId, useLayoutEffect, useState } from 'preact/hooks';
import { type DocumentState, readEntries } from '../api/history-reads.ts';
import { Icon } from '../components/icon.tsx';
import { LazyList } from '../components/lazy-list.tsx';
import { countText } from '../components/numbers.ts';
import { ChangeTypeMark, Time } from '../components/values.tsx';
import { queryOfDocument } from '../history/document-queries.ts';
import { PathSummary } from '../history/entry-list.tsx';
import { Person } from '../history/who.tsx';
import type { DocumentView } from './document-view.ts';
import type { NumberedEntry } from './touches-of-paths.ts';

interface TimelineProps {
  readonly life: DocumentLife;
  /** The change after which the document is shown. */
  readonly shown: number | undefined;
  readonly compared: number | undefined;
  readonly onShow: (change: number) => void;
  readonly onCompare: (change: number) => void;
}

/** The whole life of a document, the newest change first. */
export function Timeline({ life, shown, compared, onShow, onCompare }: TimelineProps) {
  return (
    <ol class="timeline">
      <LazyList
        items={life.changes}
        render={(change) => (
          <TimelineItem
            key={change.number}
            change={change}
            isShown={change.number === shown}
            isCompared={change.number === compared}
            onShow={onShow}
            onCompare={onCompare}
          />
        )}
      />
      {life.changes.length < life.total ? (
        <li class="muted timeline-rest">
          {countText(life.total - life.changes.length)} earlier changes: the slider reaches them.
        </li>
      ) : undefined}
    </ol>
  );
}

interface TimelineItemProps extends Pick<TimelineProps, 'onShow' | 'onCompare'> {
  readonly change: NumberedEntry;
  readonly isShown: boolean;
  readonly isCompared: boolean;
}

function TimelineItem({ change: { number, entry }, isShown, isCompared, onShow, onCompare }: TimelineItemProps) {
  return (
    <li class={`timeline-item${isShown ? ' shown' : ''}${isCompared ? ' compared' : ''}`}>
      <button type="button" class="timeline-show" aria-pressed={isShown} onClick={() => onShow(number)}>
        <ChangeTypeMark type={entry.type} short />
        <span>
          <Time at={entry.at} />
        </span>
        {entry.actor === undefined ? undefined : (
          <span class="timeline-actor">
            <Person name={entry.actor} id={entry.actorId} />
          </span>
        )}
        <span class="timeline-paths">
          <PathSummary entry={entry} />
        </span>
      </button>
      <button
        type="button"
        class="timeline-compare"
        aria-pressed={isCompared}
        aria-label={`Compare with change ${number}`}
        title="Compare the document that is shown with this moment"
        onClick={() => onCompare(number)}
      >
        ⇄
      </button>
    </li>
  );
}

/** The changes of a document, the newest first. */
export interface DocumentLife {
  readonly total: number;
  readonly changes: readonly NumberedEntry[];
}

/** Changes that are read. Of a longer life the newest are shown; the slider reaches all. */
const maxChanges = 1_000;
const size = 100;

export async function readLife(
  document: Pick<DocumentView, 'entity' | 'entityId'>,
  signal: AbortSignal,
): Promise<DocumentLife> {
  const q = queryOfDocument(document);
  const first = await readEntries({ q, page: 1, size }, signal);
  const total = first.totalElements;
  const entries = [...first.items];
  for (let page = 2; page <= first.totalPages && entries.length < maxChanges; page += 1) {
    entries.push(...(await readEntries({ q, page, size }, signal)).items);
  }
  return { total, changes: entries.map((entry, index) => ({ number: total - index, entry })) };
}

interface MomentSliderProps {
  /** The change after which the document is shown. */
  readonly change: number;
  readonly total: number;
  readonly onChange: (change: number) => void;
}

/** Milliseconds that the slider rests before its moment is fetched. */
const pause = 120;

/** Moves through the changes of a document, the oldest at the left. */
export function MomentSlider({ change, total, onChange }: MomentSliderProps) {
  const [position, setPosition] = useState(change);
  const id = useId();
  // Before the reader can move it: a move made at once would be lost.
  useLayoutEffect(() => setPosition(change), [change]);
  useEffect(() => {
    if (position === change) return;
    const timer = setTimeout(() => onChange(position), pause);
    return () => clearTimeout(timer);
  }, [position]);
  return (
    <div class="moment-slider">
      <label for={id}>
        After change <strong class="number">{countText(position)}</strong> of {countText(total)}
      </label>
      <input
        id={id}
        type="range"
        min={Math.min(1, position)}
        max={Math.max(1, total)}
        value={position}
        disabled={total < 2}
        onInput={(event) => setPosition(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}

/** Where the whole document is not known, says since when it is recorded. */
export function KnownSince({ state, life }: { readonly state: DocumentState; readonly life: DocumentLife }) {
  if (state.complete) return null;
  const oldest = life.changes.at(-1);
  return (
    <p class="known-since">
      <Icon name="warning" />
      <span>
        {oldest === undefined || life.changes.length < life.total ? (
          'Not all of this document is known.'
        ) : (
          <>
            Known since <Time at={oldest.entry.at} />. Not every part of the document was recorded, so some may be
            missing.
          </>
        )}
      </span>
    </p>
  );
}
