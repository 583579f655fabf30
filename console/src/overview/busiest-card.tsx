import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { Name } from '../components/name.tsx';
import { countText } from '../components/numbers.ts';
import { historyOf } from '../history/history-view.ts';
import { quoted } from '../query-text/quoted.ts';
import { Link } from '../router/link.tsx';
import type { Target } from '../router/location.ts';
import { OverviewCard } from './overview-card.tsx';
import { sinceQuery } from './since-query.ts';

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
  return (
    <OverviewCard title={title} requested={requested} aside={<span class="muted">30 days</span>}>
      {({ values, others, totalElements }) =>
        totalElements === 0 ? (
          <p class="muted">Nobody has changed anything in this time.</p>
        ) : (
          <ul class="busiest">
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
