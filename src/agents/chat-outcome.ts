import { causeOf, type FailureCause } from '../providers/failure-cause.ts';
import type { ChatFailure } from './chat-failure.ts';
import type { Conversed } from './conversation.ts';

export interface ChatAnswer {
  readonly agentId: string;
  readonly agentType: 'custom';
  readonly sessionId: string;
  readonly message: string;
}

export interface ChatResult {
  readonly answer: ChatAnswer;
  /** Whether something of the change history is in it, directly or by way of earlier answers. */
  readonly fromHistory: boolean;
}

/**
 * What a chat has come to. A failure that is not known as one is a fault of the service, unless it was given up: then
 * `error` is the reason of the signal that it was given.
 */
export type ChatOutcome =
  | { conversed: Conversed }
  | { failure: ChatFailure | undefined; error: unknown; givenUp?: boolean };

/** For the log: why there is no answer, undefined where there is one. */
export function reasonOf(outcome: ChatOutcome): string | undefined {
  if ('conversed' in outcome) return undefined;
  const { failure, error, givenUp = false } = outcome;
  if (givenUp) return `Given up: ${error instanceof Error ? error.message : 'nobody waits for it any more'}.`;
  if (failure === undefined) return 'An internal error occurred.';
  const details = failure.error.details.map(({ field, message }) => `${field} ${message}.`);
  return [failure.error.message, ...details].join(' ');
}

/** For the log: the kind of that reason; undefined where there is none, or where the fault is the service's own. */
export function causeOfOutcome(outcome: ChatOutcome): FailureCause | undefined {
  if ('conversed' in outcome) return undefined;
  return outcome.givenUp === true ? 'cancelled' : causeOf(outcome.failure?.error ?? outcome.error);
}
