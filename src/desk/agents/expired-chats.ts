import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { FailureCause } from '../../providers/failure-cause.ts';
import { writeLogs } from './log-store.ts';
import { noteOf } from './request-log.ts';
import { dropExpiredTurn, expiredTurns, findExpiredTurns, type TokenCounts } from './turn-store.ts';

const maxAtOnce = 100;

/** A request that has its position in its session and will not be answered. */
interface UnansweredChat {
  readonly logId: string;
  readonly requestId: string;
  readonly sessionId: string;
  readonly agentId: string;
  /** Milliseconds. */
  readonly duration: number;
  readonly tokens: TokenCounts;
}

/** Logs a request that no process runs any more. A log of the process that ran it has more detail, and stays. */
export async function logUnansweredChat(
  transaction: DatabaseTransaction,
  tenant: string,
  { logId: id, ...chat }: UnansweredChat,
  { text, cause, at }: { text: string; cause: FailureCause | undefined; at: number },
): Promise<void> {
  const { requestId, sessionId, agentId, duration, tokens } = chat;
  const messages = [noteOf({ severity: 'ERROR', text, agentId, requestId, at })];
  const log = { id, requestId, sessionId, agentId, duration, tokens, messages, at, cause };
  await writeLogs(transaction, tenant, log, { ifNone: true });
}

/** Logs requests of dead processes and of jobs that ended before they began, with known tokens, for all tenants. */
export async function logExpiredChats(db: Database, now: () => number, findTenants: FindTenants): Promise<void> {
  await forEachTenant(await findTenants(expiredTurns), (tenant) => logExpiredOf(db, tenant, now));
}

async function logExpiredOf(db: Database, tenant: string, now: () => number): Promise<void> {
  for (const turn of await findExpiredTurns(db, tenant, maxAtOnce)) {
    await inTransaction(db, async (transaction) => {
      const expired = await dropExpiredTurn(transaction, tenant, turn);
      if (expired === undefined) return;
      const unanswered = { ...expired, sessionId: turn.sessionId };
      const text =
        'Its process or its job ended before there was an answer. If a call of the model was under way, its tokens are unknown.';
      await logUnansweredChat(transaction, tenant, unanswered, { text, cause: 'cancelled', at: now() });
    });
  }
}
