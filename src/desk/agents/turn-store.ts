import { type RawBuilder, sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';
import './tables.ts';

/** The position of a request in its session. */
export interface TurnName {
  readonly sessionId: string;
  readonly position: number;
}

export interface TokenCounts {
  readonly prompt: number;
  readonly completion: number;
}

/** The messages of an answered turn. */
export interface ExchangeContent {
  readonly message: string;
  readonly answer: string;
}

export interface EarlierTurn extends ExchangeContent {
  readonly bytes: number;
}

export interface EarlierTurns {
  /** Oldest first. */
  readonly turns: readonly EarlierTurn[];
  /** The number of all earlier turns, including those that do not fit. */
  readonly total: number;
  /** The number of turns with change history that this client may not read. */
  readonly withheld: number;
  /** Whether any turn shows this client change history, which it may quote after the turn no longer fits. */
  readonly fromHistory: boolean;
}

export interface ExpiredTurn {
  readonly requestId: string;
  readonly logId: string;
  readonly agentId: string;
  /** Milliseconds since the turn began, by the clock of its start. */
  readonly duration: number;
  readonly tokens: TokenCounts;
}

const leaseEnd = (lease: number) => sql<Date>`statement_timestamp() + ${`${lease} milliseconds`}::interval`;
const now = sql<Date>`statement_timestamp()`;

export interface NewTurn {
  readonly sessionId: string;
  readonly requestId: string;
  /** The id of the request's log. */
  readonly logId: string;
  readonly agentId: string;
  /** Milliseconds; 0 for the position of a job, which lasts as long as the job. */
  readonly lease: number;
}

/**
 * Whether a request has its position in a session and has not ended: its process lives, or its job is in progress. A
 * job needs no lease, because it is retried if its process dies. A cluster requires the tenant in each subquery.
 */
function isUnderWay(tenant: string): RawBuilder<boolean> {
  return sql`(agent_turn.state = 'running' and (agent_turn.expires_at > ${now} or exists (
    select from job where job.tenant = ${tenant} and job.session_id = agent_turn.session_id
      and job.place = agent_turn.position and job.status = 'in_progress')))`;
}

/** Whether a job, a row of \`waiting\`, must wait for an earlier request of its session. */
export function waitsForSession(tenant: string): RawBuilder<boolean> {
  return sql`exists (
    select from agent_turn where agent_turn.tenant = ${tenant} and agent_turn.session_id = waiting.session_id
      and agent_turn.position < waiting.place and ${isUnderWay(tenant)})`;
}

/** Takes the next position of a session, creating the session if it does not exist. */
export async function takePlace(
  transaction: DatabaseTransaction,
  tenant: string,
  { sessionId, requestId, logId, agentId, lease }: NewTurn,
): Promise<number> {
  const { turns } = await transaction
    .insertInto('agent_session')
    .values({ tenant, id: sessionId, turns: 1 })
    .onConflict((conflict) => conflict.columns(['tenant', 'id']).doUpdateSet({ turns: sql`agent_session.turns + 1` }))
    .returning('turns')
    .executeTakeFirstOrThrow();
  const ids = { session_id: sessionId, request_id: requestId, log_id: logId, agent_id: agentId };
  const turn = { tenant, position: turns, ...ids };
  await transaction
    .insertInto('agent_turn')
    .values({ ...turn, state: 'running', expires_at: leaseEnd(lease) })
    .execute();
  return turns;
}

/** Whether an earlier request of the session still runs, or waits as a job. */
export async function hasEarlierRunning(db: Database, tenant: string, { sessionId, position }: TurnName) {
  const row = await db
    .selectFrom('agent_turn')
    .select('position')
    .where(({ and }) => and({ tenant, session_id: sessionId }))
    .where('position', '<', position)
    .where(isUnderWay(tenant))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Extends the lease of the process and stores the tokens used so far. */
export async function extendTurn(
  db: Database,
  tenant: string,
  { sessionId, position }: TurnName,
  { lease, tokens }: { lease: number; tokens: TokenCounts },
): Promise<void> {
  await db
    .updateTable('agent_turn')
    .set({ expires_at: leaseEnd(lease), prompt_tokens: tokens.prompt, completion_tokens: tokens.completion })
    .where(({ and }) => and({ tenant, session_id: sessionId, position, state: 'running' }))
    .execute();
}

/**
 * Reads the latest turns before this one that fit into `maxBytes` together. Turns with entries of the change history
 * only for clients that may read it.
 */
export async function readEarlierTurns(
  db: Database,
  tenant: string,
  { sessionId, position }: TurnName,
  { maxBytes, withHistory }: { maxBytes: number; withHistory: boolean },
): Promise<EarlierTurns> {
  const { rows } = await sql<{ exchange: string | null; bytes: number | null; total: number; fromHistory: number }>`
    with earlier as (
      select position, bytes, from_history from agent_turn
        where tenant = ${tenant} and session_id = ${sessionId} and position < ${position} and state = 'answered'
    ), readable as (
      select position, sum(bytes) over (order by position desc) as bytes_so_far from earlier
        where ${withHistory}::boolean or not from_history
    ), totals as (
      select count(*) as total, count(*) filter (where from_history) as from_history from earlier
    )
    select totals.total, totals.from_history as "fromHistory", turn.exchange, turn.bytes
        from totals left join (
        readable join agent_turn turn
          on turn.tenant = ${tenant} and turn.session_id = ${sessionId} and turn.position = readable.position
          and readable.bytes_so_far <= ${maxBytes}
      ) on true
      order by turn.position`.execute(db);
  const turns = rows.flatMap(({ exchange, bytes }): EarlierTurn[] => {
    if (exchange === null) return [];
    const content: ExchangeContent = JSON.parse(exchange);
    return [{ ...content, bytes: bytes ?? 0 }];
  });
  const { total, fromHistory } = rows[0] ?? { total: 0, fromHistory: 0 };
  return { turns, total, withheld: withHistory ? 0 : fromHistory, fromHistory: withHistory && fromHistory > 0 };
}

/** Whether any turn of the session contains change history. */
export async function tellsHistory(
  transaction: DatabaseTransaction,
  tenant: string,
  sessionId: string,
): Promise<boolean> {
  const row = await transaction
    .selectFrom('agent_turn')
    .select('position')
    .where(({ and }) => and({ tenant, session_id: sessionId, from_history: true }))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Locks a session, so that transactions write its log one at a time. */
export async function lockSession(transaction: DatabaseTransaction, tenant: string, sessionId: string): Promise<void> {
  await transaction
    .selectFrom('agent_session')
    .select('id')
    .where(({ and }) => and({ tenant, id: sessionId }))
    .forUpdate()
    .execute();
}

/** Stores the messages, unless upkeep dropped the turn because its process seemed dead. */
export async function answerTurn(
  transaction: DatabaseTransaction,
  tenant: string,
  { sessionId, position }: TurnName,
  { exchange, fromHistory }: { exchange: ExchangeContent; fromHistory: boolean },
): Promise<void> {
  const bytes = Buffer.byteLength(exchange.message) + Buffer.byteLength(exchange.answer);
  await transaction
    .updateTable('agent_turn')
    .set({ state: 'answered', exchange: JSON.stringify(exchange), bytes, from_history: fromHistory })
    .where(({ and }) => and({ tenant, session_id: sessionId, position }))
    .execute();
}

/** Drops a turn without an answer. Later turns do not see it. */
export async function dropTurn(
  transaction: DatabaseTransaction,
  tenant: string,
  { sessionId, position }: TurnName,
): Promise<void> {
  await transaction
    .deleteFrom('agent_turn')
    .where(({ and }) => and({ tenant, session_id: sessionId, position }))
    .execute();
}

/** Turns of dead processes, or whose job has not begun. */
export const expiredTurns: TenantWork = {
  table: 'agent_turn',
  condition: "state = 'running' and expires_at <= statement_timestamp()",
};

/** Finds a tenant's turns of dead processes, or whose job ended before it began. */
export async function findExpiredTurns(db: Database, tenant: string, limit: number): Promise<TurnName[]> {
  return await db
    .selectFrom('agent_turn')
    .select(['session_id as sessionId', 'position'])
    .where(({ and }) => and({ tenant, state: 'running' }))
    .where(sql<boolean>`not ${isUnderWay(tenant)}`)
    .limit(limit)
    .execute();
}

/**
 * Drops and returns a turn that will not be answered. Undefined where its process lives, its job is in progress, or it
 * is gone.
 */
export async function dropExpiredTurn(
  transaction: DatabaseTransaction,
  tenant: string,
  { sessionId, position }: TurnName,
): Promise<ExpiredTurn | undefined> {
  const row = await transaction
    .selectFrom('agent_turn')
    .select([
      'request_id as requestId',
      'log_id as logId',
      'agent_id as agentId',
      'prompt_tokens as prompt',
      'completion_tokens as completion',
      sql<number>`(extract(epoch from ${now} - began_at) * 1000)::bigint`.as('duration'),
    ])
    .where(({ and }) => and({ tenant, session_id: sessionId, position, state: 'running' }))
    .where(sql<boolean>`not ${isUnderWay(tenant)}`)
    .forUpdate()
    // Null in answered turns of earlier versions alone.
    .$narrowType<{ logId: string }>()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  await dropTurn(transaction, tenant, { sessionId, position });
  const { prompt, completion, ...turn } = row;
  return { ...turn, tokens: { prompt, completion } };
}
