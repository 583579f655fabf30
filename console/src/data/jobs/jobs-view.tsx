import type { Job } from '@annals/client';
import { useState } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useReloads } from '../../api/requests.ts';
import { allows, readsHistory } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { DownloadLink, defaultExportChoice, ExportChoiceFields, sentChoice } from '../../components/export-choice.tsx';
import { TextField } from '../../components/forms.tsx';
import { bytesText, counted } from '../../components/numbers.ts';
import { Dialog } from '../../components/overlays.tsx';
import { Badge, Progress } from '../../components/states.tsx';
import { Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { Time } from '../../components/values.tsx';
import { ListPage, useList } from '../../lists/list-page.tsx';
import { Link, parametersWith, place, setParameters } from '../../router/router.tsx';
import { JobPanel, kindOf, pollPause, stateOf } from './job-panel.tsx';

/** Exports of the history, and chats that run in the background. */
export function JobsView() {
  const open = place.value.parameters.get('job') ?? '';
  const [isExporting, setExporting] = useState(false);
  const list = useList({
    name: 'jobs',
    defaultSort: 'metadata.createdAt:DESC',
    read: (parameters, signal) => annals().jobs.list(parameters, { signal }),
  });
  const isAnyRunning = list.page.value?.items.some(({ status }) => status === 'in_progress') ?? false;
  useReloads(list.page, { pause: pollPause, isOn: isAnyRunning });
  const seesAll = allows('ai.agent_read', 'ai.agent_manage');
  return (
    <ListPage
      list={list}
      title="Jobs"
      lead={seesAll ? 'Exports of the history, and chats that run in the background.' : 'Your exports of the history.'}
      example="type:EXPORT status:success"
      chips={[
        ['Exports', 'type:EXPORT'],
        ['Failed', 'status:failure'],
      ]}
      noun="job"
      empty={{
        icon: 'clock',
        title: 'There is no job',
        text: 'A job is an export of the history, or a chat that your application does not wait for.',
      }}
      add={
        readsHistory() ? (
          <Button kind="primary" icon="plus" onClick={() => setExporting(true)}>
            New export
          </Button>
        ) : undefined
      }
      keyOf={({ id }) => id}
      isOpen={({ id }) => open === id}
      columns={[
        {
          label: 'Started',
          sort: 'metadata.createdAt',
          class: 'nowrap',
          cell: ({ id, metadata }) => (
            <Link class="row-link" to={{ path: 'data/jobs', parameters: parametersWith({ job: id }) }}>
              <Time at={metadata.createdAt} />
            </Link>
          ),
        },
        { label: 'Job', sort: 'type', class: 'nowrap', cell: kindOf },
        { label: 'State', sort: 'status', cell: (job) => <Badge tone={stateOf(job).tone}>{stateOf(job).word}</Badge> },
        {
          label: 'What',
          cell: (job) => (
            <span class="cell-cut">
              <Subject job={job} />
            </span>
          ),
        },
        { label: 'Result', cell: (job) => <JobResult job={job} /> },
      ]}
    >
      {open === '' ? undefined : (
        <JobPanel key={open} id={open} onClose={() => setParameters({ job: undefined })} onDeleted={list.reload} />
      )}
      {isExporting ? <ExportDialog onClose={() => setExporting(false)} onStarted={list.reload} /> : undefined}
    </ListPage>
  );
}

function Subject({ job }: { readonly job: Job }) {
  if (job.type === 'EXPORT') return <Name text={job.metadata.q ?? ''} />;
  return job.request === undefined ? <AgentName id={job.agentId ?? ''} /> : <Name text={job.request} />;
}

/** The result of a job so far. */
function JobResult({ job }: { readonly job: Job }) {
  const { status, type, metadata } = job;
  if (status === 'failure') return <Name text={metadata.error?.message ?? 'It failed.'} />;
  if (status === 'in_progress') {
    return (
      <div class="job-progress">
        <Progress share={undefined} label="In progress" />
        {metadata.entries === undefined ? undefined : (
          <span class="muted number">{counted(metadata.entries, 'change')} so far</span>
        )}
      </div>
    );
  }
  if (type === 'EXPORT') {
    return (
      <span class="row-actions">
        <DownloadLink job={job} />
        <span class="muted number nowrap">
          {counted(metadata.entries ?? 0, 'change')}, {bytesText(metadata.bytes ?? 0)}
        </span>
      </span>
    );
  }
  return <Name class="cell-cut" text={job.message ?? ''} />;
}

/** Starts an export of the history. */
function ExportDialog({ onClose, onStarted }: { readonly onClose: () => void; readonly onStarted: () => void }) {
  const [q, setQ] = useState('');
  const [choice, setChoice] = useState(defaultExportChoice);
  const run = async () => {
    await annals().jobs.export({ q, ...sentChoice(choice) });
    tell('The export has started.');
    onStarted();
  };
  return (
    <Dialog title="New export" onClose={onClose} actions={[{ label: 'Start', run }]}>
      <TextField
        kind="code"
        label="Query"
        hint="A query of the history. Without a time it means the last 30 days. An empty query takes everything in them."
        placeholder='entity:order occurredAt:>="2026-10-01T00:00:00Z"'
        value={q}
        onText={setQ}
      />
      <ExportChoiceFields choice={choice} onChange={setChoice} />
    </Dialog>
  );
}
