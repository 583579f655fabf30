import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { CopyButton } from '../../components/buttons.tsx';
import { causeText, counted, durationText } from '../../components/numbers.ts';
import { SidePanel } from '../../components/overlays.tsx';
import { FailureBox, Skeleton } from '../../components/states.tsx';
import { Name, Time } from '../../components/values.tsx';
import { Link } from '../../router/router.tsx';
import { LogLines, SeverityBadge } from './log-lines.tsx';

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
