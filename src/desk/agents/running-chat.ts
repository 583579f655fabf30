import type { FastifyBaseLogger } from 'fastify';
import type { Caller } from '../../http/credentials.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { causeOf, type FailureCause } from '../../providers/failure-cause.ts';
import type { OnText } from '../../providers/port.ts';
import type { QueuedChat } from '../queued-chat.ts';
import { type AgentRow, resetFailures } from './agent-store.ts';
import type { AgentHead } from './agent-texts.ts';
import type { LogMessage } from './answer-schemas.ts';
import { noteFailure } from './auto-disable.ts';
import type { ChatFailure } from './chat-failure.ts';
import type { ConversationResult } from './conversation.ts';
import { writeLogs } from './log-store.ts';
import type { QueueMail } from './ports.ts';
import { noteOf } from './request-log.ts';
import { answerTurn, dropTurn, type TurnName } from './turn-store.ts';

export interface ChatRequest extends QueuedChat {
  /**
   * Cancels the chat: aborts the call to the provider or the tool's query. Tokens are still settled and logged. The
   * abort reason's message is logged too, so it must be one of the service's own errors.
   */
  readonly signal?: AbortSignal | undefined;
  /** The network address of the request; left out for chat jobs, whose queue stores none. */
  readonly caller?: Caller | undefined;
  /** Receives each part of the answer. */
  readonly onText?: OnText | undefined;
  /** Called when the request has its position in its session. */
  readonly onAccepted?: (() => void) | undefined;
  /** Awaited before each call of the provider; the first round is 0. If it rejects, the call is not sent. */
  readonly beforeCall?: ((round: number) => Promise<void>) | undefined;
}

/** A chat that has its position in its session. */
export interface RunningChat {
  readonly request: ChatRequest;
  /** The id of its request log. */
  readonly logId: string;
  /** Read again after waiting for earlier requests of the session. */
  agent: AgentRow & { readonly head: AgentHead };
  readonly turn: TurnName;
  /** In milliseconds of performance.now(). */
  readonly began: number;
  /** Whether a call of the provider may have been sent. */
  hasCalled: boolean;
  /** The tokens of its calls so far: charged to the quota, or reported by the provider for an own key. */
  readonly tokens: { prompt: number; completion: number };
  /** The lines of its log so far. */
  readonly messages: LogMessage[];
}

interface ChatAnswer {
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
function reasonOf(outcome: ChatOutcome): string | undefined {
  if ('conversed' in outcome) return undefined;
  const { failure, error, givenUp = false } = outcome;
  if (givenUp) return `Given up: ${error instanceof Error ? error.message : 'the client has gone'}.`;
  if (failure === undefined) return 'An internal error occurred.';
  const details = failure.error.details.map(({ field, message }) => `${field} ${message}.`);
  return [failure.error.message, ...details].join(' ');
}

/** The cause of the failure for the log; undefined after a success, or where the service itself is at fault. */
function causeOfOutcome(outcome: ChatOutcome): FailureCause | undefined {
  if ('conversed' in outcome) return undefined;
  return outcome.givenUp === true ? 'cancelled' : causeOf(outcome.failure?.error ?? outcome.error);
}

export interface FinishChatOptions {
  db: Database;
  logger: FastifyBaseLogger;
  now: () => number;
  queueMail: QueueMail;
  /** The tenant's address for e-mails; undefined where the tenant has set none. */
  notificationEmail(tenant: string): Promise<string | undefined>;
}

/**
 * Stores the outcome of a chat in one transaction: its turn, its logs, and the effect on its agent. Replaces a log that
 * upkeep wrote because the process seemed dead.
 */
export function createFinishChat({ db, logger, now, queueMail, notificationEmail }: FinishChatOptions) {
  return async (running: RunningChat, outcome: ChatOutcome): Promise<void> => {
    const { request, logId: id, agent, began, messages, tokens } = running;
    const { tenant, agentId, requestId, sessionId } = request;
    const reason = reasonOf(outcome);
    if (reason !== undefined) {
      const severity = 'givenUp' in outcome && outcome.givenUp === true ? 'WARNING' : 'ERROR';
      messages.push(noteOf({ severity, text: reason, agentId, requestId, at: now() }));
    }
    const isConfiguration = 'failure' in outcome && outcome.failure?.isConfiguration === true;
    const to = isConfiguration ? await notificationEmail(tenant) : undefined;
    const duration = Math.round(performance.now() - began);
    const cause = causeOfOutcome(outcome);
    const disabled = await inTransaction(
      db,
      async (transaction) => {
        await endTurn(transaction, running, outcome);
        const log = { id, requestId, sessionId, agentId, messages, duration, tokens, cause, at: now() };
        await writeLogs(transaction, tenant, log);
        if ('conversed' in outcome) await resetFailures(transaction, tenant, { id: agentId, term: agent.term });
        if (!isConfiguration) return false;
        const failed = { id: agentId, term: agent.term, reason: reason ?? '', notificationEmail: to, at: now() };
        return await noteFailure(transaction, tenant, failed, queueMail);
      },
      { retries: 3 },
    );
    if (disabled) logger.warn({ tenant, agentId }, 'an agent was disabled after configuration failures');
  };
}

async function endTurn(
  transaction: DatabaseTransaction,
  { request: { tenant, message }, turn }: RunningChat,
  outcome: ChatOutcome,
): Promise<void> {
  if (!('conversed' in outcome)) return await dropTurn(transaction, tenant, turn);
  const { text: answer, fromHistory } = outcome.conversed;
  await answerTurn(transaction, tenant, turn, { exchange: { message, answer }, fromHistory });
}
