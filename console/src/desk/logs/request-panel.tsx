import { AgentName } from '../../agent-names/agent-name.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/use-request.ts';
import { CopyButton } from '../../components/copy-button.tsx';
import { FailureBox } from '../../components/failure-box.tsx';
import { Skeleton } from '../../components/loading.tsx';
import { causeText, durationText } from '../../components/log-words.ts';
import { Name } from '../../components/name.tsx';
import { counted } from '../../components/numbers.ts';
import { SidePanel } from '../../components/side-panel.tsx';
import { Time } from '../../components/time.tsx';
import { Link } from '../../router/link.tsx';
import { LogLines } from './log-lines.tsx';
import { SeverityBadge } from './severity-badge.tsx';

/** One request. Its id is that of the log or of the request itself. */
export function RequestPanel({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const {
    value: log,
    error,
    reload,
  } = useRequest(`request ${id}`, (signal) => annals().logs.requests.get(id, { signal }));
  return (
    <SidePanel title="Request" onClose={onClose}>
      {error === undefined ? undefined : <FailureBox error={error} onRetry={reload} />}
      {log === undefined ? (
        error === undefined ? (
          <Skeleton />
        ) : undefined
      ) : (
        <div class="stack">
          <dl class="facts">
            <dt>Outcome</dt>
            <dd>
              <SeverityBadge severity={log.severity} /> {log.cause === undefined ? undefined : causeText(log.cause)}
            </dd>
            <dt>Agent</dt>
            <dd>
              <Link to={{ path: 'desk/agent', parameters: { id: log.triggerAgentId } }}>
                <AgentName id={log.triggerAgentId} withId />
              </Link>
            </dd>
            <dt>Time</dt>
            <dd>
              <Time at={log.metadata.createdAt} />, {durationText(log.durationMs)}
            </dd>
            <dt>Tokens</dt>
            <dd>
              {counted(log.promptTokens, 'token')} in, {counted(log.completionTokens, 'token')} out
            </dd>
            <dt>Session</dt>
            <dd class="mono">
              <Link to={{ path: 'desk/sessions', parameters: { session: log.sessionId } }}>{log.sessionId}</Link>
            </dd>
            <dt>Request id</dt>
            <dd class="mono">
              <Name text={log.requestId} />
              <CopyButton text={() => log.requestId} what="the request id" />
            </dd>
          </dl>
          <h3>What happened</h3>
          <LogLines messages={log.messages} />
        </div>
      )}
    </SidePanel>
  );
}
