import type { ChangeHistogram } from '@annals/client';
import { useMemo } from 'preact/hooks';
import { readHistogram } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { BarChart } from '../charts/bar-chart.tsx';
import { barsOfChanges } from '../charts/bars.ts';
import { counted, countText } from '../components/numbers.ts';
import { FailureBox, LoadingLine } from '../components/states.tsx';
import { momentText, timeText, zoneName } from '../components/times.ts';

interface HistoryChartProps {
  /** Undefined until the service has taken the query. */
  readonly q: string | undefined;
  /** Counts up with each refresh. */
  readonly round: number;
  readonly onRange: (from: string, before: string) => void;
}

const buckets = 60;

/** All matches over time, stacked by type. One drags over it to narrow the time. */
export function HistoryChart({ q, round, onRange }: HistoryChartProps) {
  const key = q === undefined ? undefined : `${q} ${round} ${zoneName()}`;
  const { value, error, isLoading, reload } = useRequest(key, (signal) => readHistogram(q ?? '', buckets, signal));
  const chart = useMemo(() => (value === undefined ? undefined : barsOfChanges(value)), [value]);
  return (
    <section class="card history-chart" aria-label="Changes over time">
      <LoadingLine active={isLoading} />
      <header>
        <p class="history-total number">{value === undefined ? '–' : countText(value.totalElements)}</p>
        <p class="muted">{value === undefined ? 'changes' : describe(value)}</p>
      </header>
      <FailureBox error={error} onRetry={reload} />
      {chart === undefined || value === undefined || value.buckets.length === 0 ? (
        <div class="history-chart-empty" />
      ) : (
        <BarChart
          label={`${counted(value.totalElements, 'change')} over time, by type. Arrow keys move over the bars, Enter narrows the time.`}
          {...chart}
          onRange={(from, before) => onRange(momentText(from), momentText(before))}
        />
      )}
    </section>
  );
}

function describe({ totalElements, from, to, interval: { unit, count } }: ChangeHistogram): string {
  if (totalElements === 0) return 'changes';
  const time = (at: string) => timeText(at, unit === 'day' ? 'day' : 'minute');
  const step = count === 1 ? `per ${unit}` : `per ${count} ${unit}s`;
  return `${totalElements === 1 ? 'change' : 'changes'} · ${time(from)} – ${time(to)} · ${step}`;
}
