import { randomUUIDv7 } from 'node:crypto';
import type { Database } from '../db/database.ts';
import { forEachTenant } from '../db/tenants/tenants-with.ts';
import { inTransaction } from '../db/transaction.ts';
import { writeLogs } from './log-store.ts';
import { noteOf } from './request-log.ts';
import { dropExpiredTurn, findExpiredTurns, tenantsWithExpiredTurns } from './turn-store.ts';

const maxAtOnce = 100;

/** Logs the requests of all tenants whose process died, with the tokens that are known. */
export async function logExpiredChats(db: Database, now: () => number): Promise<void> {
  await forEachTenant(await tenantsWithExpiredTurns(db), (tenant) => logExpiredOf(db, tenant, now));
}

async function logExpiredOf(db: Database, tenant: string, now: () => number): Promise<void> {
  for (const turn of await findExpiredTurns(db, tenant, maxAtOnce)) {
    await inTransaction(db, async (transaction) => {
      const expired = await dropExpiredTurn(transaction, tenant, turn);
      if (expired === undefined) return;
      const { agentId, requestId, logId, duration, tokens } = expired;
      const at = now();
      const text = 'Its process ended before there was an answer.';
      const log = {
        id: logId ?? randomUUIDv7(),
        requestId,
        sessionId: turn.sessionId,
        agentId,
        messages: [noteOf({ severity: 'ERROR', text, agentId, requestId, at })],
        duration,
        tokens,
        at,
        cause: 'cancelled' as const,
      };
      // A process that ran the same chat again has logged more.
      await writeLogs(transaction, tenant, log, { ifNone: true });
    });
  }
}
