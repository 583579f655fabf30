import type { Job } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { allows, readsHistory } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { defaultExportChoice, ExportChoiceFields } from '../../components/export-choice.tsx';
import { FormField } from '../../components/forms.tsx';
import { bytesText, counted } from '../../components/numbers.ts';
import { Dialog } from '../../components/overlays.tsx';
import { PageHeader } from '../../components/page.tsx';
import { Badge, EmptyState, FailureBox, Progress } from '../../components/states.tsx';
import { tell } from '../../components/toasts.tsx';
import { Name, Time } from '../../components/values.tsx';
import { FilterBar, FilterChip, ListCard, SortHeading } from '../../lists/list-page.tsx';
import { useList } from '../../lists/use-list.ts';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { DownloadLink, JobPanel, kindOf, stateOf } from './job-panel.tsx';

/** Milliseconds between two looks at jobs that are under way. */
const pause = 2_000;

/** Exports of the history, and chats that run in the background. */
export function JobsView() {
  const open = place.value.parameters.get('job') ?? '';
  const [isExporting, setExporting] = useState(false);
  const list = useList({
    name: 'jobs',
    defaultSort: 'metadata.createdAt:DESC',
    read: (parameters, signal) => annals().jobs.list(parameters, { signal }),
  });
  const isAnyUnderWay = list.page.value?.items.some(({ status }) => status === 'in_progress') ?? false;
  useEffect(() => {
    if (!isAnyUnderWay || list.page.isLoading) return;
    const wait = setTimeout(list.page.reload, pause);
    return () => clearTimeout(wait);
  }, [isAnyUnderWay, list.page.isLoading, list.page.value]);

  const add = readsHistory() ? (
    <Button kind="primary" icon="plus" onClick={() => setExporting(true)}>
      New export
    </Button>
  ) : undefined;
  const seesAll = allows('ai.agent_read', 'ai.agent_manage');
  return (
    <>
      <PageHeader title="Jobs" lead={leadOf(seesAll)}>
        {add}
      </PageHeader>
      <FilterBar filter={list.filter} onFilter={list.setFilter} example="type:EXPORT status:success">
        <FilterChip label="Exports" term="type:EXPORT" filter={list.filter} onFilter={list.setFilter} />
        <FilterChip label="Failed" term="status:failure" filter={list.filter} onFilter={list.setFilter} />
      </FilterBar>
      <ListCard
        list={list}
        one="job"
        empty={
          <EmptyState icon="clock" title="There is no job">
            <p>A job is an export of the history, or a chat that your application does not wait for.</p>
            {add}
          </EmptyState>
        }
      >
        {(jobs) => (
          <table class="table">
            <thead>
              <tr>
                <SortHeading label="Begun" field="metadata.createdAt" list={list} />
                <SortHeading label="Job" field="type" list={list} />
                <SortHeading label="State" field="status" list={list} />
                <th scope="col">What</th>
                <th scope="col">Result</th>
              </tr>
            </thead>
            <tbody>
              {jobs.map((job) => (
                <tr key={job.id} class={open === job.id ? 'selected' : undefined}>
                  <td class="nowrap">
                    <Link class="row-link" to={{ path: 'data/jobs', parameters: parametersWith({ job: job.id }) }}>
                      <Time at={job.metadata.createdAt} />
                    </Link>
                  </td>
                  <td class="nowrap">{kindOf(job)}</td>
                  <td>
                    <Badge tone={stateOf(job).tone}>{stateOf(job).word}</Badge>
                  </td>
                  <td>
                    <span class="cell-cut">
                      <Subject job={job} />
                    </span>
                  </td>
                  <td>
                    <JobResult job={job} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </ListCard>
      {open === '' ? undefined : (
        <JobPanel key={open} id={open} onClose={() => setParameters({ job: undefined })} onDeleted={list.reload} />
      )}
      {isExporting ? (
        <ExportDialog
          onClose={() => setExporting(false)}
          onStarted={() => {
            setExporting(false);
            tell('The export has begun.');
            list.reload();
          }}
        />
      ) : undefined}
    </>
  );
}

function leadOf(seesAll: boolean): string {
  return seesAll ? 'Exports of the history, and chats that run in the background.' : 'Your exports of the history.';
}

function Subject({ job }: { readonly job: Job }) {
  if (job.type === 'EXPORT') return <Name text={job.metadata.q ?? ''} />;
  return job.request === undefined ? <AgentName id={job.agentId ?? ''} /> : <Name text={job.request} />;
}

/** What a job has brought so far. */
function JobResult({ job }: { readonly job: Job }) {
  const { status, type, metadata } = job;
  if (status === 'failure') return <Name text={metadata.error?.message ?? 'It failed.'} />;
  if (status === 'in_progress') {
    return (
      <div class="job-progress">
        <Progress share={undefined} label="Under way" />
        {metadata.entries === undefined ? undefined : (
          <span class="muted number">{counted(metadata.entries, 'entry', 'entries')} so far</span>
        )}
      </div>
    );
  }
  if (type === 'EXPORT') {
    return (
      <span class="row-actions">
        <DownloadLink job={job} />
        <span class="muted number nowrap">
          {counted(metadata.entries ?? 0, 'entry', 'entries')}, {bytesText(metadata.bytes ?? 0)}
        </span>
      </span>
    );
  }
  return (
    <span class="cell-cut">
      <Name text={job.message ?? ''} />
    </span>
  );
}

/** Starts an export of the history. */
function ExportDialog({ onClose, onStarted }: { readonly onClose: () => void; readonly onStarted: () => void }) {
  const [q, setQ] = useState('');
  const [choice, setChoice] = useState(defaultExportChoice);
  const [failure, setFailure] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const start = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await annals().jobs.export({ q, ...choice });
      onStarted();
    } catch (error) {
      setFailure(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title="New export" onClose={onClose}>
      <form class="form-grid" onInput={() => setFailure(undefined)} onSubmit={(event) => void start(event)}>
        {failure === undefined ? undefined : <FailureBox error={failure} />}
        <FormField
          label="Query"
          hint="A query of the history. Without a time it means the last 30 days. An empty query takes everything in them."
        >
          {(control) => (
            <input
              {...control}
              class="mono"
              spellcheck={false}
              autocomplete="off"
              placeholder='entity:order occurredAt:>="2026-10-01T00:00:00Z"'
              value={q}
              onInput={(event) => setQ(event.currentTarget.value)}
            />
          )}
        </FormField>
        <ExportChoiceFields choice={choice} onChange={setChoice} />
        <div class="page-actions">
          <Button kind="primary" type="submit" disabled={isBusy}>
            Start
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  );
}
