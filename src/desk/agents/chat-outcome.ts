import { causeOf, type FailureCause } from '../../providers/failure-cause.ts';
import type { ChatFailure } from './chat-failure.ts';
import type { ConversationResult } from './conversation.ts';

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
 * The outcome of a chat. An unknown failure is the service's fault, unless the chat was cancelled: then `error` is the
 * abort reason.
 */
export type ChatOutcome =
  | { conversed: ConversationResult }
  | { failure: ChatFailure | undefined; error: unknown; givenUp?: boolean };

/** Why there is no answer, for the log; undefined where there is one. */
export function reasonOf(outcome: ChatOutcome): string | undefined {
  if ('conversed' in outcome) return undefined;
  const { failure, error, givenUp = false } = outcome;
  if (givenUp) return `Given up: ${error instanceof Error ? error.message : 'the client has gone'}.`;
  if (failure === undefined) return 'An internal error occurred.';
  const details = failure.error.details.map(({ field, message }) => `${field} ${message}.`);
  return [failure.error.message, ...details].join(' ');
}

/** The cause of the failure for the log; undefined after a success, or where the service itself is at fault. */
export function causeOfOutcome(outcome: ChatOutcome): FailureCause | undefined {
  if ('conversed' in outcome) return undefined;
  return outcome.givenUp === true ? 'cancelled' : causeOf(outcome.failure?.error ?? outcome.error);
}
