import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { Name } from '../components/name.tsx';
import { Time } from '../components/time.tsx';
import { quoted } from '../query-text/quoted.ts';
import { OverviewCard } from './overview-card.tsx';
import { sinceQuery } from './since-query.ts';
import { type LatestOfWay, waysOf, wayText } from './ways.ts';

/** Entities that are looked at: the query language does not ask for the way, so the latest change of each tells. */
const maxEntities = 20;
/** The latest changes that are looked at beside, of whatever entity. The service answers no more at once. */
const maxLatest = 100;

/** How changes come in, and when each way brought the latest one. */
export function WaysCard({ from }: { readonly from: number }) {
  const requested = useRequest(`ways ${from}`, async (signal) => {
    const since = sinceQuery(from);
    const { values } = await annals().history.facets({ q: since, field: 'entity', size: maxEntities }, { signal });
    const latest = (q: string, size: number) =>
      annals().history.list({ q, size, context: true, valueLimit: 256 }, { signal });
    const pages = await Promise.all([
      latest(since, maxLatest),
      ...values.map(({ value }) => latest(`entity:${quoted(value)} ${since}`, 1)),
    ]);
    return waysOf(pages.flatMap(({ items }) => items));
  });
  return (
    <OverviewCard title="How changes come in" requested={requested}>
      {(ways) =>
        ways.length === 0 ? (
          <p class="muted">Nothing came in within 30 days. The guides tell how an application records its changes.</p>
        ) : (
          <>
            <ul class="ways">
              {ways.map((way) => (
                <WayItem key={`${way.way} ${way.by}`} way={way} />
              ))}
            </ul>
            <p class="ways-note muted">
              From the latest {maxLatest} changes, and the latest one of each of the {maxEntities} busiest entities
              within 30 days. A way that brought only earlier changes is not shown.
            </p>
          </>
        )
      }
    </OverviewCard>
  );
}

function WayItem({ way: { way, by, at, entities } }: { readonly way: LatestOfWay }) {
  return (
    <li>
      <span>
        {wayText(way)}
        {by === undefined ? undefined : (
          <span class="muted">
            {' '}
            by <Name text={by} />
          </span>
        )}
      </span>
      <span class="muted">
        last <Time at={at} detail="minute" />
      </span>
      <span class="ways-entities muted">
        {entities.map((entity, index) => (
          <span key={entity}>
            {index === 0 ? '' : ', '}
            <Name text={entity} />
          </span>
        ))}
      </span>
    </li>
  );
}
