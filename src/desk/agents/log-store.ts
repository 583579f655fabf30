import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { projectedJson, projectedText } from '../../query/json-projection.ts';
import type { RequestLogDocument, SessionLogDocument } from './answer-schemas.ts';
import type { LogReader } from './ports.ts';
import { type LoggedRequest, requestLogOf, rolledUp, withoutHistory } from './request-log.ts';
import './tables.ts';
import { lockSession } from './turn-store.ts';

const tables = {
  agent_request_log: sql`agent_request_log`,
  agent_session_log: sql`agent_session_log`,
};
export type LogKind = keyof typeof tables;

/**
 * Logs a request and adds it to its session's log, both or neither. A request has one log, which a later call replaces,
 * except with `ifNone`.
 */
export async function writeLogs(
  transaction: DatabaseTransaction,
  tenant: string,
  request: LoggedRequest,
  { ifNone = false }: { ifNone?: boolean } = {},
): Promise<void> {
  const { id, sessionId, duration, tokens } = request;
  await lockSession(transaction, tenant, sessionId);
  const replaced = await readRequestLog(transaction, tenant, id);
  if (replaced !== undefined && ifNone) return;
  const log = requestLogOf(request, replaced);
  const columns = columnsOf(log);
  await transaction
    .insertInto('agent_request_log')
    .values({ tenant, id, ...columns })
    .onConflict((conflict) => conflict.columns(['tenant', 'id']).doUpdateSet(columns))
    .execute();
  const before = await transaction
    .selectFrom('agent_session_log')
    .selectAll()
    .where(({ and }) => and({ tenant, id: sessionId }))
    .executeTakeFirst();
  const sums = {
    duration: (before?.duration ?? 0) + duration - (replaced?.durationMs ?? 0),
    prompt: (before?.prompt_tokens ?? 0) + tokens.prompt - (replaced?.promptTokens ?? 0),
    completion: (before?.completion_tokens ?? 0) + tokens.completion - (replaced?.completionTokens ?? 0),
  };
  const previous: SessionLogDocument | undefined = before && JSON.parse(before.full_document ?? before.document);
  const session = {
    duration: sums.duration,
    prompt_tokens: sums.prompt,
    completion_tokens: sums.completion,
    ...columnsOf(rolledUp(previous, log, { sums, replaced })),
  };
  await transaction
    .insertInto('agent_session_log')
    .values({ tenant, id: sessionId, ...session })
    .onConflict((conflict) => conflict.columns(['tenant', 'id']).doUpdateSet(session))
    .execute();
}

async function readRequestLog(
  transaction: DatabaseTransaction,
  tenant: string,
  id: string,
): Promise<RequestLogDocument | undefined> {
  const row = await transaction
    .selectFrom('agent_request_log')
    .select(['document', 'full_document as fullDocument'])
    .where(({ and }) => and({ tenant, id }))
    .executeTakeFirst();
  return row && JSON.parse(row.fullDocument ?? row.document);
}

/** The logs as visible to the reader, who can neither filter nor sort by hidden data. */
export function logRows(of: LogKind, { tenant, readsHistory }: LogReader): DocumentRows {
  const full = sql`(select tenant, id, coalesce(full_document, document) as document,
    coalesce(full_fields, fields) as fields from ${tables[of]}) full_log`;
  return { from: readsHistory ? full : tables[of], where: sql`tenant = ${tenant}` };
}

/**
 * The JSON text of a log; undefined where none exists. A request log is found by its `requestId` as well: an id takes
 * precedence, and of several logs of one `requestId` the newest.
 */
export async function findLog(
  db: Database,
  reader: LogReader,
  { of, id }: { of: LogKind; id: string },
): Promise<string | undefined> {
  const found = await findLogById(db, reader, { of, id });
  if (found !== undefined || of !== 'agent_request_log') return found;
  const newest = await db
    .selectFrom(of)
    .select('id')
    .where('tenant', '=', reader.tenant)
    .where(sql`fields ->> 'requestId'`, '=', projectedText(id))
    .orderBy(sql`fields #>> '{metadata,createdAt}'`, 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return newest && (await findLogById(db, reader, { of, id: newest.id }));
}

async function findLogById(
  db: Database,
  { tenant, readsHistory }: LogReader,
  { of, id }: { of: LogKind; id: string },
): Promise<string | undefined> {
  const row = await db
    .selectFrom(of)
    .select(['document', 'full_document as fullDocument'])
    .where(({ and }) => and({ tenant, id }))
    .executeTakeFirst();
  return (readsHistory ? row?.fullDocument : undefined) ?? row?.document;
}

function columnsOf<Log extends Pick<RequestLogDocument, 'messages'>>(log: Log) {
  const shown = withoutHistory(log);
  const document = JSON.stringify(shown);
  const fullDocument = shown === log ? null : JSON.stringify(log);
  return {
    document,
    fields: jsonbOf(document),
    full_document: fullDocument,
    full_fields: fullDocument === null ? null : jsonbOf(fullDocument),
  };
}

function jsonbOf(document: string) {
  return sql<string>`${projectedJson(document)}::jsonb`;
}
