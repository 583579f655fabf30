import { useEffect, useRef, useState } from 'preact/hooks';
import { quoted } from '../../../../src/query/written.ts';
import { AgentName } from '../../agent-names/agent-names.tsx';
import { annals } from '../../api/annals.ts';
import { useRequest } from '../../api/requests.ts';
import { allows } from '../../api/session.ts';
import { Button } from '../../components/buttons.tsx';
import { SelectField, TextField } from '../../components/forms.tsx';
import { PageHeader } from '../../components/page.tsx';
import { EmptyState, FailureBox } from '../../components/states.tsx';
import { Link, place, setParameters } from '../../router/router.tsx';
import { agentTitle } from '../agents/agent-draft.ts';
import { TurnLog } from '../logs/log-lines.tsx';
import { conversations, newSessionId, say, stop, type Turn, TurnView } from './turns.tsx';

const reads = () => allows('ai.agent_read', 'ai.agent_manage');

/** A chat with an agent, as it streams. The address names the agent and the session. */
export function ChatView() {
  const { parameters } = place.value;
  const agentId = parameters.get('agent') ?? '';
  const sessionId = parameters.get('session') ?? '';
  const conversation = conversations.value.get(sessionId);
  const turns = conversation?.turns ?? [];
  const isWriting = turns.at(-1)?.state === 'writing';

  const send = (message: string) => {
    const session = sessionId === '' ? newSessionId() : sessionId;
    if (session !== sessionId) setParameters({ session }, { replace: true });
    void say({ sessionId: session, agentId }, message);
  };
  return (
    <div class="chat">
      <PageHeader
        title="Chat"
        lead="Only this tab has the texts. The logs have tokens, times, and why a request failed."
      >
        {sessionId !== '' && reads() ? (
          <Link to={{ path: 'desk/sessions', parameters: { session: sessionId } }}>Session’s log</Link>
        ) : undefined}
        {sessionId === '' ? undefined : (
          <Button icon="plus" disabled={isWriting} onClick={() => setParameters({ session: undefined })}>
            New session
          </Button>
        )}
      </PageHeader>
      <AgentChoice
        agentId={agentId}
        isFixed={turns.length > 0}
        onChoose={(agent) => setParameters({ agent, session: undefined })}
      />
      {agentId === '' ? (
        <EmptyState icon="agent" title="Choose an agent">
          <p>It answers here, word by word.</p>
        </EmptyState>
      ) : (
        <>
          <EarlierNote sessionId={turns.length === 0 ? sessionId : ''} />
          <ol class="turns" aria-label="Conversation">
            {turns.map((turn, index) => (
              <ChatTurn key={index} turn={turn} agentId={agentId} onAgain={() => send(turn.message)} />
            ))}
          </ol>
          <MessageBox isWriting={isWriting} onSend={send} onStop={() => stop(sessionId)} />
        </>
      )}
    </div>
  );
}

/** A session that was started elsewhere continues, though this tab does not have its texts. */
function EarlierNote({ sessionId }: { readonly sessionId: string }) {
  const isEarlier = sessionId !== '' && reads();
  const { value } = useRequest(isEarlier ? `turns ${sessionId}` : undefined, async (signal) => {
    const q = `sessionId:${quoted(sessionId)}`;
    return (await annals().logs.requests.list({ q, pageSize: 1, total: true }, { signal })).total ?? 0;
  });
  if (!isEarlier || value === undefined || value === 0) return null;
  return (
    <p class="note">You continue an earlier session. The agent knows what was said, but this tab does not show it.</p>
  );
}

function ChatTurn({ turn, agentId, onAgain }: { turn: Turn; agentId: string; onAgain: () => void }) {
  const { message, answer, state, requestId, error } = turn;
  return (
    <TurnView message={message} answer={answer} agent={<AgentName id={agentId} />} isWriting={state === 'writing'}>
      {state === 'stopped' ? (
        <p class="muted">Stopped. The agent does not remember this answer, but its tokens count.</p>
      ) : undefined}
      {state === 'failed' ? <FailureBox error={error} onRetry={onAgain} /> : undefined}
      {requestId !== undefined && state !== 'writing' && reads() ? (
        <LogOfTurn requestId={requestId} isAnswered={state === 'answered'} />
      ) : undefined}
    </TurnView>
  );
}

/** The agent’s calls of tools, and a link to the whole log. */
function LogOfTurn({ requestId, isAnswered }: { readonly requestId: string; readonly isAnswered: boolean }) {
  // The log of a chat that was stopped is written later.
  const { value: log } = useRequest(isAnswered ? `request ${requestId}` : undefined, (signal) =>
    annals().logs.requests.get(requestId, { signal }),
  );
  return (
    <>
      {log === undefined ? undefined : <TurnLog log={log} />}
      <Link to={{ path: 'desk/requests', parameters: { request: requestId } }}>Tokens and log</Link>
    </>
  );
}

/** Pixels from the end of the page that count as its end. */
const nearEnd = 160;

interface MessageBoxProps {
  readonly isWriting: boolean;
  readonly onSend: (message: string) => void;
  readonly onStop: () => void;
}

function MessageBox({ isWriting, onSend, onStop }: MessageBoxProps) {
  const [text, setText] = useState('');
  const isAtEnd = useRef(true);
  useEffect(() => {
    const look = () => {
      isAtEnd.current = document.documentElement.scrollHeight - scrollY - innerHeight < nearEnd;
    };
    addEventListener('scroll', look, { passive: true });
    return () => removeEventListener('scroll', look);
  }, []);
  // The page follows new words, unless the reader has gone back to earlier ones.
  useEffect(() => {
    if (isAtEnd.current) scrollTo({ top: document.documentElement.scrollHeight });
  });
  const send = () => {
    const message = text.trim();
    if (message === '' || isWriting) return;
    isAtEnd.current = true;
    onSend(message);
    setText('');
  };
  return (
    <form
      class="message-box"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        class="control"
        rows={2}
        dir="auto"
        aria-label="Message"
        placeholder="Ask something. Enter sends, Shift+Enter begins a line."
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      {isWriting ? (
        <Button icon="stop" onClick={onStop}>
          Stop
        </Button>
      ) : (
        <Button kind="primary" icon="send" type="submit" disabled={text.trim() === ''}>
          Send
        </Button>
      )}
    </form>
  );
}

interface AgentChoiceProps {
  readonly agentId: string;
  /** Whether the conversation has begun. Another agent begins a new one. */
  readonly isFixed: boolean;
  readonly onChoose: (agentId: string) => void;
}

/** The agent that answers. One who may not list agents writes its id. */
function AgentChoice(props: AgentChoiceProps) {
  return allows('ai.agent_read', 'ai.agent_manage') ? <ChosenOfList {...props} /> : <WrittenId {...props} />;
}

function ChosenOfList({ agentId, isFixed, onChoose }: AgentChoiceProps) {
  const { value, error, reload } = useRequest('agents that answer', (signal) =>
    annals().agents.list({ q: 'enabled:true', sort: 'name.en:ASC', pageSize: 500 }, { signal }),
  );
  const agents = value?.items ?? [];
  const isListed = agents.some(({ id }) => id === agentId);
  const unlisted = [agentId, agentId === '' ? 'Choose an agent' : agentId] as const;
  return (
    <>
      <FailureBox error={error} onRetry={reload} />
      <div class="agent-choice">
        <SelectField
          label="Agent"
          hint={isFixed ? 'Another agent begins a new session.' : undefined}
          value={agentId}
          choices={[...(isListed ? [] : [unlisted]), ...agents.map((agent) => [agent.id, agentTitle(agent)] as const)]}
          onChoose={onChoose}
        />
      </div>
    </>
  );
}

function WrittenId({ agentId, onChoose }: AgentChoiceProps) {
  const [id, setId] = useState(agentId);
  return (
    <form
      class="agent-choice with-button"
      onSubmit={(event) => {
        event.preventDefault();
        onChoose(id.trim());
      }}
    >
      <TextField
        kind="code"
        label="Agent"
        hint="Write its id. Your client may chat, but has no scope to list agents."
        value={id}
        onText={setId}
      />
      <Button type="submit" disabled={id.trim() === '' || id === agentId}>
        Choose
      </Button>
    </form>
  );
}
