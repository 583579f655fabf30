import type { ComponentChildren } from 'preact';
import { LongText } from '../../components/long-text.tsx';
import { Markdown } from '../../components/markdown.tsx';

interface TurnViewProps {
  /** What the agent was asked; undefined where nobody kept it. */
  readonly message: string | undefined;
  readonly answer: string | undefined;
  readonly agent: ComponentChildren;
  readonly isWriting?: boolean;
  /** What happened besides: errors, tokens, links. */
  readonly children?: ComponentChildren;
}

/** A message and its answer. */
export function TurnView({ message, answer, agent, isWriting = false, children }: TurnViewProps) {
  return (
    <li class="turn">
      {message === undefined ? undefined : (
        <div class="turn-message">
          <span class="visually-hidden">Asked: </span>
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
