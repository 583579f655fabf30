import type { Job } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { isAborted } from '../api/failure.ts';
import { apiUrl, session } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { defaultExportChoice, ExportChoiceFields } from '../components/export-choice.tsx';
import { Icon } from '../components/icon.tsx';
import { bytesText, counted } from '../components/numbers.ts';
import { Dialog } from '../components/overlays.tsx';
import { FailureBox, Progress } from '../components/states.tsx';

interface ExportDialogProps {
  readonly q: string;
  /** How many entries the query finds now. */
  readonly total: number;
  readonly onClose: () => void;
}

/** Milliseconds between two looks at a job. */
const pause = 700;

/** Makes an export of the query, shows how far it is, and offers the file. The job goes on when the dialog is closed. */
export function ExportDialog({ q, total, onClose }: ExportDialogProps) {
  const [choice, setChoice] = useState(defaultExportChoice);
  const [jobId, setJobId] = useState<string | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const job = useJob(jobId, setError);

  const start = () => {
    setError(undefined);
    annals()
      .jobs.export({ q, ...choice })
      .then((made) => setJobId(made.jobId), setError);
  };

  return (
    <Dialog
      title="Export"
      onClose={onClose}
      footer={
        jobId === undefined ? (
          <StartButton total={choice.proof ? undefined : total} onStart={start} />
        ) : job?.status === 'success' ? (
          <Download job={job} />
        ) : undefined
      }
    >
      <FailureBox error={error} />
      {jobId === undefined ? (
        <>
          <p>
            {counted(total, 'entry', 'entries')} of {q === '' ? 'the last 30 days' : <code>{q}</code>}
          </p>
          <ExportChoiceFields choice={choice} onChange={setChoice} />
        </>
      ) : (
        <JobProgress job={job} total={choice.proof ? 0 : total} />
      )}
    </Dialog>
  );
}

/** `total` undefined: a bundle may have entries of other times besides. */
function StartButton({ total, onStart }: { readonly total: number | undefined; readonly onStart: () => void }) {
  return (
    <Button kind="primary" icon="download" onClick={onStart}>
      Export {total === undefined ? 'with proof' : counted(total, 'entry', 'entries')}
    </Button>
  );
}

/** `total` 0: it is not known how many entries there will be. */
function JobProgress({ job, total }: { readonly job: Job | undefined; readonly total: number }) {
  const entries = job?.metadata.entries ?? 0;
  if (job?.status === 'failure' || job?.status === 'skipped') {
    return <p role="alert">The export has failed: {job.metadata.error?.message ?? 'the service gives no reason.'}</p>;
  }
  const isDone = job?.status === 'success';
  return (
    <>
      <p aria-live="polite">
        {isDone
          ? `Ready: ${counted(entries, 'entry', 'entries')}, ${bytesText(job.metadata.bytes ?? 0)}.`
          : `${counted(entries, 'entry', 'entries')} written. You may close this; the job continues.`}
      </p>
      <Progress share={isDone ? 1 : total === 0 ? undefined : entries / total} label="Progress of the export" />
    </>
  );
}

function Download({ job: { id } }: { readonly job: Job }) {
  const tenant = encodeURIComponent(session.value?.tenant ?? '');
  return (
    <a class="button primary" href={`${apiUrl}/ai-service/${tenant}/jobs/${encodeURIComponent(id)}/content`} download>
      <Icon name="download" />
      Download
    </a>
  );
}

/** Looks at a job until it has ended. */
function useJob(id: string | undefined, onError: (error: unknown) => void): Job | undefined {
  const [job, setJob] = useState<Job | undefined>(undefined);
  useEffect(() => {
    if (id === undefined) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = () => {
      annals()
        .jobs.get(id, { signal: controller.signal })
        .then(
          (found) => {
            setJob(found);
            if (found.status === 'in_progress') timer = setTimeout(look, pause);
          },
          (error: unknown) => {
            if (!isAborted(error)) onError(error);
          },
        );
    };
    look();
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [id]);
  return job;
}
