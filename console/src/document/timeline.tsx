import { ChangeTypeMark } from '../components/change-type.tsx';
import { LazyList } from '../components/lazy-list.tsx';
import { Name } from '../components/name.tsx';
import { countText } from '../components/numbers.ts';
import { Time } from '../components/time.tsx';
import { PathSummary } from '../history/path-summary.tsx';
import type { DocumentLife } from './read-life.ts';
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
        <span class="timeline-when">
          <Time at={entry.at} />
        </span>
        <span class="timeline-actor">
          <Name text={entry.actor} />
        </span>
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
