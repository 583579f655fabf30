import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { Name } from '../components/name.tsx';
import { Time } from '../components/time.tsx';
import { OverviewCard } from './overview-card.tsx';
import { type ChangeRecorder, recorderText } from './recorders.ts';

/** How changes come in, and when each recorder did so last. `now` is that of the page, in milliseconds since 1970. */
export function RecordersCard({ now }: { readonly now: number }) {
  const requested = useRequest(`recorders ${now}`, (signal) => annals().history.recorders({ signal }));
  return (
    <OverviewCard title="How changes come in" requested={requested}>
      {({ recorders, since }) => (
        <>
          {recorders.length === 0 ? (
            <p class="muted">
              Nothing has come in{since === undefined ? '' : ' since Annals keeps this list'}. The guides say how an
              application records its changes.
            </p>
          ) : (
            <ul class="recorders">
              {recorders.map((recorder) => (
                <RecorderItem key={`${recorder.way} ${recorder.by}`} recorder={recorder} />
              ))}
            </ul>
          )}
          {since === undefined ? undefined : (
            <p class="recorders-note muted">
              Annals keeps this list since <Time at={since} detail="minute" />. It does not show what recorded only
              before.
            </p>
          )}
        </>
      )}
    </OverviewCard>
  );
}

function RecorderItem({ recorder }: { readonly recorder: ChangeRecorder }) {
  return (
    <li>
      <span>
        {recorderText(recorder)}
        {recorder.by === undefined ? undefined : (
          <span class="muted">
            {' '}
            by <Name text={recorder.by} />
          </span>
        )}
      </span>
      <span class="muted">
        last <Time at={recorder.lastRecordedAt} detail="minute" />
      </span>
    </li>
  );
}
