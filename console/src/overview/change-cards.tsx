import { ApiError, type ChangeHistogram } from '@annals/client';
import { useMemo } from 'preact/hooks';
import { quoted } from '../../../src/query/written.ts';
import { annals } from '../api/annals.ts';
import { readHistogram } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { BarChart } from '../charts/bar-chart.tsx';
import { barsOfChanges } from '../charts/bars.ts';
import { type ChangeType, changeTypes } from '../components/change-types.ts';
import { countText } from '../components/numbers.ts';
import { Name } from '../components/text.tsx';
import { momentText, zoneName } from '../components/times.ts';
import { ChangeTypeMark } from '../components/values.tsx';
import { historyOf } from '../history/history-view.ts';
import { withTime } from '../query-text/edit-query.ts';
import { Link, navigate, type Target } from '../router/router.tsx';
import { OverviewCard } from './overview-card.tsx';

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
      <div class="changes-figures stack-small">
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

function actorPage(name: string): Target {
  return { path: 'actor', parameters: { name } };
}

interface BusiestCardProps {
  readonly title: string;
  readonly field: 'actor' | 'entity';
  /** Milliseconds since 1970. */
  readonly from: number;
}

/** The actors, or the entities, with most changes of 30 days. */
export function BusiestCard({ title, field, from }: BusiestCardProps) {
  const q = sinceQuery(from);
  const requested = useRequest(`${field} ${q}`, (signal) => annals().history.facets({ q, field, size: 8 }, { signal }));
  // A session that sees nothing of who made changes cannot count by it.
  if (requested.error instanceof ApiError && requested.error.status === 400) return null;
  return (
    <OverviewCard title={title} requested={requested} aside={<span class="muted">30 days</span>}>
      {({ values, others, totalElements }) =>
        totalElements === 0 ? (
          <p class="muted">Nothing was changed in this time.</p>
        ) : (
          <ul class="busiest stack-small">
            {values.map(({ value, count }) => (
              <li key={value}>
                <Link
                  class="busiest-name"
                  to={field === 'actor' ? actorPage(value) : historyOf(`entity:${quoted(value)} ${q}`)}
                >
                  <Name text={value} />
                </Link>
                <span class="number">{countText(count)}</span>
                <span
                  class="busiest-bar"
                  style={{ width: `${(100 * count) / (values[0]?.count ?? count)}%` }}
                  aria-hidden="true"
                />
              </li>
            ))}
            {others === 0 ? undefined : (
              <li class="muted">
                <span>all others</span>
                <span class="number">{countText(others)}</span>
              </li>
            )}
          </ul>
        )
      }
    </OverviewCard>
  );
}

/** How many changes of each type the buckets hold. */
function sumsOf({ buckets }: Pick<ChangeHistogram, 'buckets'>): Record<ChangeType, number> {
  const sums = { create: 0, update: 0, delete: 0 };
  for (const bucket of buckets) for (const type of changeTypes) sums[type] += bucket[type];
  return sums;
}

/** A query for what happened at a time or later; in milliseconds since 1970. */
function sinceQuery(from: number): string {
  return `occurredAt:>="${new Date(from).toISOString()}"`;
}
