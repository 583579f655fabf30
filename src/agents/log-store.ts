import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import { projectionOf } from './agent-document.ts';
import { type LoggedRequest, requestLogOf, rolledUp, type SessionLogDocument } from './request-log.ts';
import './tables.ts';
import { lockSession } from './turn-store.ts';

/** Logs a request and adds it to the log of its session, both or neither. */
export async function writeLogs(
  transaction: DatabaseTransaction,
  tenant: string,
  request: LoggedRequest,
): Promise<void> {
  const { sessionId, duration, tokens } = request;
  const log = requestLogOf(request);
  await lockSession(transaction, tenant, sessionId);
  await transaction
    .insertInto('agent_request_log')
    .values({ tenant, id: log.id, ...columnsOf(log) })
    .execute();
  const before = await transaction
    .selectFrom('agent_session_log')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('id', '=', sessionId)
    .executeTakeFirst();
  const sums = {
    duration: (before?.duration ?? 0) + duration,
    prompt: (before?.prompt_tokens ?? 0) + tokens.prompt,
    completion: (before?.completion_tokens ?? 0) + tokens.completion,
  };
  const known: SessionLogDocument | undefined = before && JSON.parse(before.document);
  const session = {
    duration: sums.duration,
    prompt_tokens: sums.prompt,
    completion_tokens: sums.completion,
    ...columnsOf(rolledUp(known, log, sums)),
  };
  if (before === undefined) {
    await transaction
      .insertInto('agent_session_log')
      .values({ tenant, id: sessionId, ...session })
      .execute();
    return;
  }
  await transaction
    .updateTable('agent_session_log')
    .set(session)
    .where('tenant', '=', tenant)
    .where('id', '=', sessionId)
    .execute();
}

/** The JSON text of a log, undefined where there is none. */
export async function findLog(
  db: Database,
  tenant: string,
  { of, id }: { of: 'agent_request_log' | 'agent_session_log'; id: string },
): Promise<string | undefined> {
  const row = await db
    .selectFrom(of)
    .select('document')
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .executeTakeFirst();
  return row?.document;
}

function columnsOf(log: object) {
  const document = JSON.stringify(log);
  return { document, fields: sql<string>`${projectionOf(document)}::jsonb` };
}
