import type { Job } from '@annals/client';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useReloads, useRequest } from '../../api/requests.ts';
import { allows, readsContext, readsHistory, session } from '../../api/session.ts';
import { DownloadLink } from '../../components/export-choice.tsx';
import { bytesText, counted } from '../../components/numbers.ts';
import { ConfirmButton, SidePanel } from '../../components/overlays.tsx';
import { Fact } from '../../components/page.tsx';
import { Answer, Badge } from '../../components/states.tsx';
import { LongText, Name } from '../../components/text.tsx';
import { tell } from '../../components/toasts.ts';
import { Markdown, Time } from '../../components/values.tsx';
import { Link } from '../../router/router.tsx';

/** Milliseconds between two reads of a job that is in progress. */
export const pollPause = 2_000;

const states = {
  in_progress: { tone: 'busy', word: 'in progress' },
  success: { tone: 'good', word: 'done' },
  failure: { tone: 'bad', word: 'failed' },
  skipped: { tone: 'plain', word: 'skipped' },
} as const;

/** A job's state as a word and a tone. */
export function stateOf({ status }: Pick<Job, 'status'>) {
  return states[status];
}

/** What a job does. */
export function kindOf({ type }: Pick<Job, 'type'>): string {
  return type === 'EXPORT' ? 'Export' : 'Chat';
}

/** One job: its request, its result, and why it failed. */
export function JobPanel({ id, onClose, onDeleted }: { id: string; onClose: () => void; onDeleted: () => void }) {
  const request = useRequest(`job ${id}`, (signal) => annals().jobs.get(id, { signal }));
  const { value: job } = request;
  const isRunning = job?.status === 'in_progress';
  useReloads(request, { pause: pollPause, isOn: isRunning });
  return (
    <SidePanel
      title="Job"
      onClose={onClose}
      actions={
        job !== undefined && mayDelete(job) ? (
          <ConfirmButton
            kind="quiet"
            icon="remove"
            aria-label="Delete"
            title="Delete"
            ask={{
              title: 'Delete the job?',
              run: async () => {
                await annals().jobs.delete(id);
                tell('The job is deleted.');
                onDeleted();
                onClose();
              },
              body: (
                <p>
                  {isRunning
                    ? 'It is still running. It stops, and what it has written so far is deleted.'
                    : 'Its result and its file are deleted too.'}
                </p>
              ),
            }}
          />
        ) : undefined
      }
    >
      <Answer of={request}>{(read) => <JobFacts job={read} />}</Answer>
    </SidePanel>
  );
}

/**
 * Those who may read the history delete the exports of their own client; those who may write agents delete every job.
 */
function mayDelete({ metadata }: Job): boolean {
  return allows('ai.agent_manage') || (readsHistory() && metadata.clientId === session.value?.client);
}

function JobFacts({ job }: { readonly job: Job }) {
  const { metadata, agentId, sessionId, requestId, request, message } = job;
  return (
    <div class="stack">
      <dl class="facts">
        <Fact label="State">
          {kindOf(job)} <Badge tone={stateOf(job).tone}>{stateOf(job).word}</Badge>
        </Fact>
        <Fact label="Started">
          <Time at={metadata.createdAt} />
        </Fact>
        <Fact label="Last step">
          <Time at={metadata.modifiedAt} />
        </Fact>
        <Fact label="Query" class="mono" text={metadata.q} />
        {metadata.entries === undefined ? undefined : (
          <Fact label="File">
            {counted(metadata.entries, 'change')}, {bytesText(metadata.bytes ?? 0)} of {metadata.format}{' '}
            <DownloadLink job={job} />
          </Fact>
        )}
        {agentId === undefined ? undefined : (
          <Fact label="Agent">
            <Link to={{ path: 'desk/agent', parameters: { id: agentId } }}>
              <AgentName id={agentId} withId />
            </Link>
          </Fact>
        )}
        {sessionId === undefined ? undefined : (
          <Fact label="Session" class="mono">
            <Link to={{ path: 'desk/sessions', parameters: { session: sessionId } }}>{sessionId}</Link>
          </Fact>
        )}
        <Fact label="Request id" class="mono" text={requestId} />
      </dl>
      {metadata.error === undefined ? undefined : (
        <div class="failure">
          <div>
            <Name as="p" class="failure-title" text={metadata.error.message ?? metadata.error.type} />
            <p class="muted">{metadata.error.type}</p>
          </div>
        </div>
      )}
      {request === undefined ? undefined : (
        <section class="stack-small">
          <h3>Request</h3>
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
          Some of this job is hidden: it shows parts of the history, and your client has no scope to read that.
        </p>
      )}
      {metadata.context === true && readsHistory() && !readsContext() ? (
        <p class="note">
          The file has the context of changes. Your client needs the scope changelog.changelog_manage to download it.
        </p>
      ) : undefined}
      {metadata.searchesContext === true && readsHistory() && !readsContext() ? (
        <p class="note">
          The query is on the context of changes. Your client needs the scope changelog.changelog_manage to see it, its
          results and the file.
        </p>
      ) : undefined}
    </div>
  );
}
