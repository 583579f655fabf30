import type { ChangeHistogram } from '@annals/client';
import { useMemo } from 'preact/hooks';
import { readHistogram } from '../api/history-reads.ts';
import { useRequest } from '../api/use-request.ts';
import { BarChart } from '../charts/bar-chart.tsx';
import { barsOfChanges } from '../charts/change-series.ts';
import { ChangeTypeMark, changeTypes } from '../components/change-type.tsx';
import { momentText } from '../components/days.ts';
import { countText } from '../components/numbers.ts';
import { zoneName } from '../components/time-text.ts';
import { historyOf } from '../history/history-view.ts';
import { withTime } from '../query-text/edit-query.ts';
import { Link } from '../router/link.tsx';
import { navigate } from '../router/location.ts';
import { OverviewCard } from './overview-card.tsx';
import { sinceQuery } from './since-query.ts';
import { sumsOf } from './sums.ts';

interface ChangesCardProps {
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly from: number;
  /** At most so many bars. */
  readonly bars: number;
}

/** How many changes there were, by type and over time. */
export function ChangesCard({ title, from, bars }: ChangesCardProps) {
  const q = sinceQuery(from);
  const requested = useRequest(`histogram ${q} ${bars} ${zoneName()}`, (signal) => readHistogram(q, bars, signal));
  return (
    <OverviewCard title={title} wide requested={requested}>
      {(histogram) => <Changes histogram={histogram} from={from} title={title} />}
    </OverviewCard>
  );
}

function Changes({ histogram, title, from }: Omit<ChangesCardProps, 'bars'> & { readonly histogram: ChangeHistogram }) {
  // The bars stay until the next answer is there.
  const chart = useMemo(() => barsOfChanges(histogram), [histogram]);
  const sums = sumsOf(histogram);
  const q = sinceQuery(from);
  if (histogram.totalElements === 0) {
    return (
      <p class="muted">
        Nothing was recorded in this time.{' '}
        <Link to={{ path: 'history', parameters: { q: sinceQuery(0) } }}>Look at all of the history</Link>
      </p>
    );
  }
  return (
    <div class="changes">
      <div class="changes-figures">
        <Link class="figure number" to={{ path: 'history', parameters: { q } }}>
          {countText(histogram.totalElements)}
          <span class="visually-hidden"> changes</span>
        </Link>
        <ul>
          {changeTypes.map((type) => (
            <li key={type}>
              <Link class="changes-type" to={{ path: 'history', parameters: { q: `type:${type} ${q}` } }}>
                <ChangeTypeMark type={type} /> <span class="number">{countText(sums[type])}</span>
              </Link>
            </li>
          ))}
        </ul>
      </div>
      <BarChart
        label={`${title}: changes over time by type. Drag over a part to see its changes.`}
        {...chart}
        onRange={(begin, end) =>
          navigate(historyOf(withTime('', { from: momentText(begin), before: momentText(end) })))
        }
      />
    </div>
  );
}
