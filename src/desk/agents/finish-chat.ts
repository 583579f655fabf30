import type { FastifyBaseLogger } from 'fastify';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { resetFailures } from './agent-store.ts';
import { noteFailure } from './auto-disable.ts';
import { type ChatOutcome, causeOfOutcome, reasonOf } from './chat-outcome.ts';
import { writeLogs } from './log-store.ts';
import type { QueueMail } from './ports.ts';
import { noteOf } from './request-log.ts';
import type { RunningChat } from './running-chat.ts';
import { answerTurn, dropTurn } from './turn-store.ts';

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
