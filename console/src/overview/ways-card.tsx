import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { Name } from '../components/name.tsx';
import { Time } from '../components/time.tsx';
import { OverviewCard } from './overview-card.tsx';
import { type Way, wayText } from './ways.ts';

/** How changes come in, and when each way recorded last. `now` is that of the page, in milliseconds since 1970. */
export function WaysCard({ now }: { readonly now: number }) {
  const requested = useRequest(`ways ${now}`, (signal) => annals().history.ways({ signal }));
  return (
    <OverviewCard title="How changes come in" requested={requested}>
      {({ ways, since }) => (
        <>
          {ways.length === 0 ? (
            <p class="muted">
              Nothing has come in{since === undefined ? '' : ' since Annals notes it'}. The guides tell how an
              application records its changes.
            </p>
          ) : (
            <ul class="ways">
              {ways.map((way) => (
                <WayItem key={`${way.way} ${way.by}`} way={way} />
              ))}
            </ul>
          )}
          {since === undefined ? undefined : (
            <p class="ways-note muted">
              Noted since <Time at={since} detail="minute" />. A way that recorded only before is not shown.
            </p>
          )}
        </>
      )}
    </OverviewCard>
  );
}

function WayItem({ way }: { readonly way: Way }) {
  return (
    <li>
      <span>
        {wayText(way)}
        {way.by === undefined ? undefined : (
          <span class="muted">
            {' '}
            by <Name text={way.by} />
          </span>
        )}
      </span>
      <span class="muted">
        last <Time at={way.lastRecordedAt} detail="minute" />
      </span>
    </li>
  );
}
