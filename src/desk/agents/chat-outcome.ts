import { causeOf, type FailureCause } from '../../providers/failure-cause.ts';
import type { ChatFailure } from './chat-failure.ts';
import type { Conversed } from './conversation.ts';

export interface ChatAnswer {
  readonly agentId: string;
  readonly agentType: 'generic';
  readonly sessionId: string;
  readonly message: string;
}

export interface ChatResult {
  readonly answer: ChatAnswer;
  /** Whether the answer contains data of the change history, directly or through earlier answers. */
  readonly fromHistory: boolean;
}

/**
 * The outcome of a chat. An unknown failure is a fault of the service, unless the chat was cancelled: then `error` is
 * the reason of its abort signal.
 */
export type ChatOutcome =
  | { conversed: Conversed }
  | { failure: ChatFailure | undefined; error: unknown; givenUp?: boolean };

/** The reason for the log why there is no answer; undefined where there is one. */
export function reasonOf(outcome: ChatOutcome): string | undefined {
  if ('conversed' in outcome) return undefined;
  const { failure, error, givenUp = false } = outcome;
  if (givenUp) return `Given up: ${error instanceof Error ? error.message : 'nobody waits for it any more'}.`;
  if (failure === undefined) return 'An internal error occurred.';
  const details = failure.error.details.map(({ field, message }) => `${field} ${message}.`);
  return [failure.error.message, ...details].join(' ');
}

/** The cause of that failure for the log; undefined where the chat succeeded or the service itself is at fault. */
export function causeOfOutcome(outcome: ChatOutcome): FailureCause | undefined {
  if ('conversed' in outcome) return undefined;
  return outcome.givenUp === true ? 'cancelled' : causeOf(outcome.failure?.error ?? outcome.error);
}
