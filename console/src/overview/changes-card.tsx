import type { ChangeHistogram } from '@annals/client';
import { useMemo } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { BarChart } from '../charts/bar-chart.tsx';
import { ChangeTypeMark, changeTypes } from '../components/change-type.tsx';
import { countText } from '../components/numbers.ts';
import { Link } from '../router/link.tsx';
import { navigate } from '../router/location.ts';
import { barsOf, sumsOf } from './bars.ts';
import { OverviewCard } from './overview-card.tsx';
import { sinceQuery } from './since-query.ts';

interface ChangesCardProps {
  readonly title: string;
  /** Milliseconds since 1970. */
  readonly from: number;
  readonly now: number;
  /** Milliseconds of a bar. */
  readonly width: number;
  /** Days of the service are UTC. */
  readonly zone?: 'utc' | undefined;
}

/** How many changes there were, by type and over time. */
export function ChangesCard({ title, from, now, width, zone }: ChangesCardProps) {
  const q = sinceQuery(from);
  // One bucket more than bars that fit: the window begins and ends inside of one.
  const buckets = Math.ceil((now - from) / width) + 1;
  const requested = useRequest(`histogram ${q} ${buckets}`, (signal) =>
    annals().history.histogram({ q, buckets }, { signal }),
  );
  return (
    <OverviewCard
      title={title}
      wide
      requested={requested}
      aside={zone === 'utc' ? <span class="muted">days in UTC</span> : undefined}
    >
      {(histogram) => <Changes histogram={histogram} from={from} now={now} width={width} zone={zone} title={title} />}
    </OverviewCard>
  );
}

function Changes({
  histogram,
  title,
  from,
  now,
  width,
  zone,
}: ChangesCardProps & { readonly histogram: ChangeHistogram }) {
  const { starts, counts } = useMemo(
    () => barsOf(histogram, { width, from, to: now }),
    // The bars stay until the next answer is there.
    [histogram],
  );
  const series = useMemo(
    () => changeTypes.map((type) => ({ label: type, colour: `--${type}-bar`, counts: counts[type] })),
    [counts],
  );
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
        starts={starts}
        width={width}
        series={series}
        zone={zone}
        onRange={(begin, end) =>
          navigate({
            path: 'history',
            parameters: {
              q: `occurredAt:(>="${new Date(begin).toISOString()}" AND <"${new Date(end).toISOString()}")`,
            },
          })
        }
      />
    </div>
  );
}
