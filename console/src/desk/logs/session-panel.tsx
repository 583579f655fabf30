import { quoted } from '../../../../src/query/written.ts';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { causeText, counted, durationText } from '../../components/numbers.ts';
import { SidePanel } from '../../components/overlays.tsx';
import { Answer } from '../../components/states.tsx';
import { Time } from '../../components/values.tsx';
import { Link, navigate, parametersWith, setParameters } from '../../router/router.tsx';
import { conversations, TurnView } from '../chat/turns.tsx';
import { TurnLog } from './log-lines.tsx';
import { type SessionTurn, turnsOf } from './session-turns.ts';

/** Requests of a session that are shown. */
const maxTurns = 200;

/** A session read as a conversation: each request with its tokens, and its texts where they are known. */
export function SessionPanel({ id }: { readonly id: string }) {
  const session = useRequest(`session ${id}`, async (signal) => {
    const only = { q: `sessionId:${quoted(id)}`, pageSize: maxTurns };
    const [log, requests, jobs] = await Promise.all([
      annals().logs.sessions.get(id, { signal }),
      annals().logs.requests.list({ ...only, sort: 'metadata.createdAt:ASC' }, { signal }),
      annals().jobs.list(only, { signal }),
    ]);
    return { log, requests, jobs };
  });
  const agent = session.value?.log.agents.at(-1);
  return (
    <SidePanel
      title="Session"
      onClose={() => setParameters({ session: undefined })}
      actions={
        session.value !== undefined && allows('ai.agentexecution_manage') ? (
          <Button icon="send" onClick={() => navigate({ path: 'desk/chat', parameters: { agent, session: id } })}>
            Continue
          </Button>
        ) : undefined
      }
    >
      <Answer of={session}>
        {({ log, requests, jobs }) => {
          const turns = turnsOf(requests.items, { jobs: jobs.items, conversation: conversations.value.get(id) });
          return (
            <div class="stack">
              <p class="muted">
                {counted(turns.length, 'request')} in {durationText(log.durationMs)}:{' '}
                {counted(log.promptTokens, 'token')} in, {counted(log.completionTokens, 'token')} out.{' '}
                <span class="mono">{id}</span>
              </p>
              {turns.every(({ message }) => message !== undefined) ? undefined : (
                <p class="note">The logs have no texts. You see the texts of jobs, and of chats in this tab.</p>
              )}
              <ol class="turns" aria-label="Conversation">
                {turns.map((turn) => (
                  <OneTurn key={turn.log.id} turn={turn} />
                ))}
              </ol>
              {requests.next === undefined ? undefined : (
                <Link to={{ path: 'desk/requests', parameters: { q: `sessionId:${quoted(id)}` } }}>All requests</Link>
              )}
            </div>
          );
        }}
      </Answer>
    </SidePanel>
  );
}

function OneTurn({ turn: { log, message, answer } }: { readonly turn: SessionTurn }) {
  const request = parametersWith({ session: undefined, q: undefined, request: log.id });
  return (
    <TurnView message={message} answer={answer} agent={<AgentName id={log.triggerAgentId} />}>
      <TurnLog log={log} />
      <p class="muted">
        <Link to={{ path: 'desk/requests', parameters: request }}>
          <Time at={log.metadata.createdAt} />
        </Link>
        {' · '}
        {log.cause === undefined ? '' : `${causeText(log.cause)} · `}
        {counted(log.promptTokens, 'token')} in, {counted(log.completionTokens, 'token')} out ·{' '}
        {durationText(log.durationMs)}
      </p>
    </TurnView>
  );
}
