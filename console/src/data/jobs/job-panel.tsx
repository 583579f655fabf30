import type { Job } from '@annals/client';
import { useEffect, useState } from 'preact/hooks';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows, apiUrl, readsContext, readsHistory, session } from '../../api/session.ts';
import { Button, Icon } from '../../components/buttons.tsx';
import { Markdown } from '../../components/markdown.tsx';
import { bytesText, countText } from '../../components/numbers.ts';
import { ConfirmDialog, SidePanel } from '../../components/overlays.tsx';
import { Badge, FailureBox, Skeleton } from '../../components/states.tsx';
import { tell } from '../../components/toasts.tsx';
import { LongText, Name, Time } from '../../components/values.tsx';
import { Link } from '../../router/router.tsx';

interface JobPanelProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

/** One job: what was asked, what came of it, and why it failed. */
export function JobPanel({ id, onClose, onDeleted }: JobPanelProps) {
  const [isDeleting, setDeleting] = useState(false);
  const {
    value: job,
    error,
    isLoading,
    reload,
  } = useRequest(`job ${id}`, (signal) => annals().jobs.get(id, { signal }));
  const isUnderWay = job?.status === 'in_progress';
  useEffect(() => {
    if (!isUnderWay || isLoading) return;
    const wait = setTimeout(reload, 2_000);
    return () => clearTimeout(wait);
  }, [isUnderWay, isLoading, job]);
  return (
    <SidePanel
      title="Job"
      onClose={onClose}
      actions={
        job !== undefined && mayDelete(job) ? (
          <Button kind="quiet" icon="remove" aria-label="Delete" title="Delete" onClick={() => setDeleting(true)} />
        ) : undefined
      }
    >
      {error === undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      {job === undefined ? error === undefined ? <Skeleton /> : undefined : <JobFacts job={job} />}
      {isDeleting ? (
        <ConfirmDialog
          title="Delete the job?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await annals().jobs.delete(id);
            tell('The job is deleted.');
            onDeleted();
            onClose();
          }}
        >
          <p>
            {isUnderWay
              ? 'It is still running. It stops, and what it has written so far is deleted.'
              : 'Its result and its file are deleted too.'}
          </p>
        </ConfirmDialog>
      ) : undefined}
    </SidePanel>
  );
}

/** Who may read the history deletes the exports of the own client, and whoever may write agents deletes every job. */
function mayDelete({ metadata }: Job): boolean {
  return allows('ai.agent_manage') || (readsHistory() && metadata.clientId === session.value?.client);
}

function JobFacts({ job }: { readonly job: Job }) {
  const { metadata, agentId, sessionId, requestId, request, message } = job;
  return (
    <div class="stack">
      <dl class="facts">
        <dt>State</dt>
        <dd>
          {kindOf(job)} <Badge tone={stateOf(job).tone}>{stateOf(job).word}</Badge>
        </dd>
        <dt>Begun</dt>
        <dd>
          <Time at={metadata.createdAt} />
        </dd>
        <dt>Last step</dt>
        <dd>
          <Time at={metadata.modifiedAt} />
        </dd>
        {metadata.q === undefined ? undefined : (
          <>
            <dt>Query</dt>
            <dd class="mono">
              <Name text={metadata.q} />
            </dd>
          </>
        )}
        {metadata.entries === undefined ? undefined : (
          <>
            <dt>File</dt>
            <dd>
              {countText(metadata.entries)} entries, {bytesText(metadata.bytes ?? 0)} of {metadata.format}{' '}
              <DownloadLink job={job} />
            </dd>
          </>
        )}
        {agentId === undefined ? undefined : (
          <>
            <dt>Agent</dt>
            <dd>
              <Link to={{ path: 'desk/agent', parameters: { id: agentId } }}>
                <AgentName id={agentId} withId />
              </Link>
            </dd>
          </>
        )}
        {sessionId === undefined ? undefined : (
          <>
            <dt>Session</dt>
            <dd class="mono">
              <Link to={{ path: 'desk/sessions', parameters: { session: sessionId } }}>{sessionId}</Link>
            </dd>
          </>
        )}
        {requestId === undefined ? undefined : (
          <>
            <dt>Request id</dt>
            <dd class="mono">
              <Name text={requestId} />
            </dd>
          </>
        )}
      </dl>
      {metadata.error === undefined ? undefined : (
        <div class="failure">
          <div>
            <p class="failure-title">
              <Name text={metadata.error.message ?? metadata.error.type} />
            </p>
            <p class="muted">{metadata.error.type}</p>
          </div>
        </div>
      )}
      {request === undefined ? undefined : (
        <section class="stack-small">
          <h3>Asked</h3>
          <LongText text={request} />
        </section>
      )}
      {message === undefined ? undefined : (
        <section class="stack-small">
          <h3>Answer</h3>
          <Markdown text={message} />
        </section>
      )}
      {metadata.guarded === undefined || readsHistory() ? undefined : (
        <p class="note">
          Some of this job is hidden: it tells of the history, and your client has no scope to read that.
        </p>
      )}
      {metadata.context === true && readsHistory() && !readsContext() ? (
        <p class="note">
          The file has the context of changes. Your client needs the scope changelog.changelog_manage to download it.
        </p>
      ) : undefined}
    </div>
  );
}

type Tone = 'plain' | 'good' | 'busy' | 'bad';

const states: Readonly<Record<Job['status'], { readonly tone: Tone; readonly word: string }>> = {
  in_progress: { tone: 'busy', word: 'under way' },
  success: { tone: 'good', word: 'done' },
  failure: { tone: 'bad', word: 'failed' },
  skipped: { tone: 'plain', word: 'skipped' },
};

/** A job's state as a word and a tone. */
export function stateOf({ status }: Pick<Job, 'status'>): { readonly tone: Tone; readonly word: string } {
  return states[status];
}

/** What a job does. */
export function kindOf({ type }: Pick<Job, 'type'>): string {
  return type === 'EXPORT' ? 'Export' : 'Chat';
}

/** The file of an export. The service sends it as an attachment. */
export function DownloadLink({ job }: { readonly job: Job }) {
  const isThere = job.type === 'EXPORT' && job.status === 'success';
  if (!isThere || !readsHistory()) return null;
  if (job.metadata.context === true && !readsContext()) return null;
  const tenant = encodeURIComponent(session.value?.tenant ?? '');
  return (
    <a class="button plain" href={`${apiUrl}/ai-service/${tenant}/jobs/${encodeURIComponent(job.id)}/content`} download>
      <Icon name="download" />
      {job.metadata.format ?? 'File'}
    </a>
  );
}
