import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { annals } from '../../api/annals.ts';
import { isAborted } from '../../api/failure.ts';
import { LongText } from '../../components/text.tsx';
import { Markdown } from '../../components/values.tsx';

/** A message to an agent, and what came of it. */
export interface Turn {
  readonly message: string;
  /** The part of the answer that has come so far. */
  readonly answer: string;
  readonly state: 'writing' | 'answered' | 'stopped' | 'failed';
  /** Under this id the request is logged. */
  readonly requestId: string | undefined;
  readonly error: unknown;
}

export interface Conversation {
  readonly sessionId: string;
  readonly agentId: string;
  readonly turns: readonly Turn[];
}

/** The chats of this tab, by session. The service keeps no text of a chat in its logs, so they end with the tab. */
export const conversations = signal<ReadonlyMap<string, Conversation>>(new Map());

const running = new Map<string, AbortController>();

/**
 * Sends a message, and adds to the conversation what comes. Does not throw: a failure is a part of the conversation.
 */
export async function say(start: Omit<Conversation, 'turns'>, message: string): Promise<void> {
  const { sessionId, agentId } = start;
  const turns = conversations.value.get(sessionId)?.turns ?? [];
  const place = turns.length;
  const controller = new AbortController();
  running.set(sessionId, controller);
  let turn: Turn = { message, answer: '', state: 'writing', requestId: undefined, error: undefined };
  const show = (change: Partial<Turn>) => {
    turn = { ...turn, ...change };
    const before = conversations.value.get(sessionId)?.turns ?? turns;
    keep({ ...start, turns: [...before.slice(0, place), turn] });
  };
  show({});
  const stream = annals().chat.stream({ agentId, message, sessionId }, { signal: controller.signal });
  try {
    for await (const text of stream) show({ answer: turn.answer + text, requestId: stream.requestId });
    show({ state: 'answered', answer: (await stream.answer()).message, requestId: stream.requestId });
  } catch (error) {
    const stopped = isAborted(error) || controller.signal.aborted;
    show(stopped ? { state: 'stopped', requestId: stream.requestId } : { state: 'failed', error });
  } finally {
    if (running.get(sessionId) === controller) running.delete(sessionId);
  }
}

/** Ends the answer that is being written. */
export function stop(sessionId: string): void {
  running.get(sessionId)?.abort();
}

/** The id of a new session: a UUID. `crypto.randomUUID` is missing on pages without TLS. */
export function newSessionId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function keep(conversation: Conversation): void {
  conversations.value = new Map(conversations.value).set(conversation.sessionId, conversation);
}

interface TurnViewProps {
  /** The message to the agent; undefined if it was not kept. */
  readonly message: string | undefined;
  readonly answer: string | undefined;
  readonly agent: ComponentChildren;
  readonly isWriting?: boolean;
  /** Errors, tokens and links. */
  readonly children?: ComponentChildren;
}

/** A message and its answer. */
export function TurnView({ message, answer, agent, isWriting = false, children }: TurnViewProps) {
  return (
    <li class="turn">
      {message === undefined ? undefined : (
        <div class="turn-message">
          <span class="visually-hidden">Message: </span>
          <LongText text={message} />
        </div>
      )}
      <div class="turn-answer">
        <p class="turn-agent">{agent}</p>
        {answer === undefined || answer === '' ? undefined : <Markdown text={answer} />}
        {isWriting ? (
          <span class="turn-writing" role="status">
            <span class="visually-hidden">The agent is writing</span>
          </span>
        ) : undefined}
        {children === undefined ? undefined : <div class="turn-notes">{children}</div>}
      </div>
    </li>
  );
}
