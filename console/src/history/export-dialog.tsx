import type { Job } from '@annals/client';
import { useState } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { useReloads, useRequest } from '../api/requests.ts';
import { DownloadLink, defaultExportChoice, ExportChoiceFields, sentChoice } from '../components/export-choice.tsx';
import { bytesText, counted } from '../components/numbers.ts';
import { Dialog } from '../components/overlays.tsx';
import { FailureBox, Progress } from '../components/states.tsx';

interface ExportDialogProps {
  readonly q: string;
  /** How many changes the query finds now. */
  readonly total: number;
  readonly onClose: () => void;
}

/** Milliseconds between two reads of the job. */
const pause = 700;

/**
 * Makes an export of the query, shows its progress, and offers the file. The job continues when the dialog is closed.
 */
export function ExportDialog({ q, total, onClose }: ExportDialogProps) {
  const [choice, setChoice] = useState(defaultExportChoice);
  const [jobId, setJobId] = useState<string>();
  const request = useRequest(jobId, (signal) => annals().jobs.get(jobId ?? '', { signal }));
  const { value: job, error } = request;
  useReloads(request, { pause, isOn: job?.status === 'in_progress' });
  if (jobId === undefined) {
    const run = async () => {
      setJobId((await annals().jobs.export({ q, ...sentChoice(choice) })).jobId);
      return false;
    };
    // With proof the file may have changes of other times as well.
    const label = `Export ${choice.proof ? 'with proof' : counted(total, 'change')}`;
    return (
      <Dialog title="Export" onClose={onClose} actions={[{ label, run }]}>
        <p>
          {counted(total, 'change')} of {q === '' ? 'the last 30 days' : <code>{q}</code>}
        </p>
        <ExportChoiceFields choice={choice} onChange={setChoice} />
      </Dialog>
    );
  }
  return (
    <Dialog
      title="Export"
      onClose={onClose}
      footer={
        job === undefined ? undefined : (
          <DownloadLink job={job} kind="primary">
            Download
          </DownloadLink>
        )
      }
    >
      <FailureBox error={error} />
      <JobProgress job={job} total={choice.proof ? undefined : total} />
    </Dialog>
  );
}

/** `total` undefined: it is unknown how many entries there will be. */
function JobProgress({ job, total }: { readonly job: Job | undefined; readonly total: number | undefined }) {
  const entries = job?.metadata.entries ?? 0;
  if (job?.status === 'failure' || job?.status === 'skipped') {
    return <p role="alert">The export has failed: {job.metadata.error?.message ?? 'the service gives no reason.'}</p>;
  }
  const isDone = job?.status === 'success';
  const share = total === undefined || total === 0 ? undefined : entries / total;
  return (
    <>
      <p aria-live="polite">
        {isDone
          ? `Ready: ${counted(entries, 'change')}, ${bytesText(job.metadata.bytes ?? 0)}.`
          : `${counted(entries, 'change')} written. You may close this; the job continues.`}
      </p>
      <Progress share={isDone ? 1 : share} label="Progress of the export" />
    </>
  );
}
