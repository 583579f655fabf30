import type { ChangeHistogram } from '@annals/client';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { readHistogram } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { counted } from '../components/numbers.ts';
import { Card } from '../components/page.tsx';
import { FailureBox } from '../components/states.tsx';
import { momentText, startOfDay, type TimeBounds, timeText, zoneName } from '../components/times.ts';
import { writtenTime } from '../query-text/edit-query.ts';
import { type ActiveDay, daysOf, levelOf, type Month, monthsOf } from './active-days.ts';
import './activity-calendar.css';

interface ActivityCalendarProps {
  /** The query, without a time; undefined until the service has taken it. */
  readonly q: string | undefined;
  readonly round: number;
  readonly onDay: (bounds: TimeBounds) => void;
}

/**
 * A histogram of which no interval is in two days by any clock: days, or quarters of an hour where the changes span less
 * than two days. The service takes the shortest interval that needs at most so many buckets, so the span comes first.
 */
async function readActivity(q: string, signal: AbortSignal): Promise<ChangeHistogram> {
  const { from, to } = await readHistogram(q, 1, signal);
  const days = (Date.parse(to) - Date.parse(from)) / 86_400_000;
  return await readHistogram(q, days < 2 ? Math.ceil(days * 96) + 2 : Math.ceil(days) + 1, signal);
}

/** On which days of the last year something was changed: a column is a week. A click narrows the time to a day. */
export function ActivityCalendar({ q, round, onDay }: ActivityCalendarProps) {
  const [now] = useState(Date.now);
  const starts = daysOf(now);
  const sent = q === undefined ? undefined : `${q} ${writtenTime({ from: momentText(starts[0] ?? now) })}`.trim();
  const key = sent === undefined ? undefined : `${sent} ${round} ${zoneName()}`;
  const { value, error, isLoading, reload } = useRequest(key, (signal) => readActivity(sent ?? '', signal));
  const days = countByDay(starts, value);
  const active = days.filter(({ count }) => count > 0).length;
  const summary = value === undefined ? 'Days' : `Active on ${counted(active, 'day')} of the last year`;
  return (
    <Card
      title="Calendar"
      class="activity"
      isLoading={isLoading}
      aside={<span class="muted number">{value === undefined ? ' ' : summary}</span>}
    >
      <FailureBox error={error} onRetry={reload} />
      <Calendar
        label={`${summary}. Arrow keys move over the days, Enter narrows the time.`}
        days={days}
        onDay={onDay}
      />
    </Card>
  );
}

function countByDay(starts: readonly number[], histogram: ChangeHistogram | undefined): ActiveDay[] {
  const counts = new Map<string, number>();
  for (const { at, count } of histogram?.buckets ?? []) {
    const day = timeText(at, 'day');
    counts.set(day, (counts.get(day) ?? 0) + count);
  }
  return starts.map((start) => ({ start, count: counts.get(timeText(start, 'day')) ?? 0 }));
}

interface CalendarProps {
  readonly label: string;
  readonly days: readonly ActiveDay[];
  readonly onDay: (bounds: TimeBounds) => void;
}

/** Days beside each arrow key: a column is a week. */
const steps: Readonly<Record<string, number>> = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -7, ArrowRight: 7 };

function Calendar({ label, days, onDay }: CalendarProps) {
  const grid = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  // One day is reached by Tab, the others from there.
  const [reached, setReached] = useState(days.length - 1);
  const max = Math.max(...days.map(({ count }) => count));
  // The latest days are in sight.
  useLayoutEffect(() => {
    if (scroller.current !== null) scroller.current.scrollLeft = scroller.current.scrollWidth;
  }, []);
  const move = (event: KeyboardEvent, from: number) => {
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = from + step;
    if (next < 0 || next >= days.length) return;
    setReached(next);
    grid.current?.querySelectorAll('button')[next]?.focus();
  };
  return (
    <div ref={scroller} class="activity-scroll">
      <div class="activity-months" aria-hidden="true">
        {monthsOf(days.map(({ start }) => start)).map((month) => (
          <MonthName key={month.week} {...month} />
        ))}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is no grid of days. */}
      <div ref={grid} class="activity-days" role="group" aria-label={label}>
        {days.map(({ start, count }, index) => {
          const text = `${timeText(start, 'weekday')}: ${counted(count, 'change')}`;
          return (
            <button
              key={start}
              type="button"
              class={`activity-day level-${levelOf(count, max)}`}
              tabIndex={index === reached ? 0 : -1}
              aria-label={text}
              title={text}
              onKeyDown={(event) => move(event, index)}
              onFocus={() => setReached(index)}
              onClick={() => onDay({ from: momentText(start), before: momentText(startOfDay(start, 1)) })}
            />
          );
        })}
      </div>
    </div>
  );
}

function MonthName({ name, week }: Month) {
  return <span style={{ gridColumnStart: week + 1 }}>{name}</span>;
}
