import type { Job } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-name.tsx';
import { annals } from '../../api/annals.ts';
import { allows, readsHistory } from '../../api/session.ts';
import { Badge } from '../../components/badge.tsx';
import { Button } from '../../components/button.tsx';
import { EmptyState } from '../../components/empty-state.tsx';
import { Name } from '../../components/name.tsx';
import { bytesText, counted } from '../../components/numbers.ts';
import { PageHeader } from '../../components/page-header.tsx';
import { Progress } from '../../components/progress.tsx';
import { Time } from '../../components/time.tsx';
import { tell } from '../../components/toasts.tsx';
import { FilterBar, FilterChip } from '../../lists/filter-bar.tsx';
import { ListCard } from '../../lists/list-card.tsx';
import { SortHeading } from '../../lists/sort-heading.tsx';
import { useList } from '../../lists/use-list.ts';
import { Link } from '../../router/link.tsx';
import { parametersWith, place, setParameters } from '../../router/location.ts';
import { DownloadLink } from './download-link.tsx';
import { ExportDialog } from './export-dialog.tsx';
import { JobPanel } from './job-panel.tsx';
import { kindOf, stateOf } from './job-words.ts';

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
