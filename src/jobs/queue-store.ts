import { sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import type { JobDocument, JobType } from './job.ts';
import type { TakenJob } from './job-store.ts';
import './tables.ts';

/** Milliseconds. A worker that has not been heard of for so long is dead, and its job is handed out again. */
export const jobLease = 15_000;

const now = sql<Date>`clock_timestamp()`;
const later = (milliseconds: number) => sql<Date>`clock_timestamp() + ${`${milliseconds} milliseconds`}::interval`;

/** The tenants that have jobs waiting, by type of job. */
export async function tenantsWithWaiting(db: Database): Promise<{ type: JobType; tenant: string }[]> {
  return await db
    .selectFrom('job')
    .select(['type', 'tenant'])
    .distinct()
    .where('status', '=', 'in_progress')
    .where('held_until', 'is', null)
    .execute();
}

/**
 * How many jobs of a tenant wait, up to `max`. Others that queue a job of the tenant wait for this transaction, so the
 * number still holds when it is committed.
 */
export async function countWaiting(transaction: DatabaseTransaction, tenant: string, max: number): Promise<number> {
  await sql`select from tenant where tenant = ${tenant} for no key update`.execute(transaction);
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (
      select from job where tenant = ${tenant} and status = 'in_progress' and held_until is null limit ${max}
    ) waiting`.execute(transaction);
  return rows[0]?.count ?? 0;
}

/** Takes up the tenant's job of that type that has waited longest; undefined where none waits any more. */
export async function takeNextJob(db: Database, tenant: string, type: JobType): Promise<TakenJob | undefined> {
  const row = await db
    .updateTable('job')
    .set({
      attempt: sql<number>`attempt + 1`,
      stalled: sql<number>`stalled + 1`,
      held_until: later(jobLease),
    })
    .where('tenant', '=', tenant)
    .where('id', '=', (next) =>
      next
        .selectFrom('job')
        .select('id')
        .where('tenant', '=', tenant)
        .where('type', '=', type)
        .where('status', '=', 'in_progress')
        .where('held_until', 'is', null)
        .orderBy('queued_at')
        .orderBy('id')
        .limit(1)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { id, attempt, stalled, call_began: callBegan, input, snapshot, since, last_at: at, last_sequence } = row;
  const hasProgress = snapshot !== null && since !== null && at !== null && last_sequence !== null;
  const progress = hasProgress ? { snapshot, since, after: { at, sequence: last_sequence } } : undefined;
  const document: JobDocument = JSON.parse(row.full_document ?? row.document);
  return { tenant, id, type, attempt, stalled, callBegan, input, progress, document };
}

/** Says that the worker lives; false where the job is not the worker's any more. */
export async function extendHold(db: Database, { tenant, id, attempt }: TakenJob): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('job')
    .set({ held_until: later(jobLease) })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .where('attempt', '=', attempt)
    .where('status', '=', 'in_progress')
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Hands a job back, for any worker to take it up after so many milliseconds. */
export async function handBack(db: Database, { tenant, id, attempt }: TakenJob, milliseconds: number): Promise<void> {
  await db
    .updateTable('job')
    .set({ held_until: milliseconds === 0 ? null : later(milliseconds) })
    .where('tenant', '=', tenant)
    .where('id', '=', id)
    .where('attempt', '=', attempt)
    .where('status', '=', 'in_progress')
    .execute();
}

/** Lets jobs wait again whose worker is dead, or that were handed back for later; of all tenants. Answers how many. */
export async function freeExpiredJobs(db: Database): Promise<bigint> {
  const { numUpdatedRows } = await db
    .updateTable('job')
    .set({ held_until: null })
    .where('status', '=', 'in_progress')
    .where('held_until', '<=', now)
    .executeTakeFirst();
  return numUpdatedRows;
}
