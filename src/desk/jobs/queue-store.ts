import { type RawBuilder, sql } from 'kysely';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { lockTenant } from '../../postgres/tenants/tenants.ts';
import { type FindTenants, forEachTenant, type TenantWork } from '../../postgres/tenants/tenants-with.ts';
import type { JobType } from './job.ts';
import { leasedJob, type TakenJob } from './job-store.ts';
import type { JobDocument } from './schemas.ts';

/** Milliseconds after which a worker that has not extended its lease is dead, and another takes its job. */
export const jobLease = 15_000;

const now = sql<Date>`statement_timestamp()`;
const later = (milliseconds: number) => sql<Date>`statement_timestamp() + ${`${milliseconds} milliseconds`}::interval`;

const waiting = (type: JobType): TenantWork => ({
  table: 'job',
  condition: `type = '${type}' and status = 'in_progress' and held_until is null`,
});

/** Waiting jobs by type, and jobs whose worker is dead or whose delay is over. */
export const jobWork = {
  AGENT_CHAT: waiting('AGENT_CHAT'),
  EXPORT: waiting('EXPORT'),
  expired: { table: 'job', condition: "status = 'in_progress' and held_until <= statement_timestamp()" },
} as const satisfies Record<JobType | 'expired', TenantWork>;

/**
 * Counts the waiting jobs of a tenant, up to `max`. Serializes transactions that queue a tenant's jobs, so that the
 * number is still correct at commit.
 */
export async function countWaiting(transaction: DatabaseTransaction, tenant: string, max: number): Promise<number> {
  await lockTenant(transaction, tenant);
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from (
      select from job where tenant = ${tenant} and status = 'in_progress' and held_until is null limit ${max}
    ) waiting`.execute(transaction);
  return rows[0]?.count ?? 0;
}

/** A condition on a row of `waiting`: the job must wait for an earlier request of its session. */
export type WaitsForSession = (tenant: string) => RawBuilder<boolean>;

/**
 * Takes the tenant's oldest waiting job of that type that need not wait for its session; undefined if there is none. A
 * job that waits for its session takes no slot, because the request that it waits for may need one.
 */
export async function takeNextJob(
  db: Database,
  tenant: string,
  { type, waitsForSession }: { type: JobType; waitsForSession: WaitsForSession },
): Promise<TakenJob | undefined> {
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
        .selectFrom('job as waiting')
        .select('id')
        .where(({ and }) => and({ tenant, type, status: 'in_progress' }))
        .where('held_until', 'is', null)
        .where(sql<boolean>`not ${waitsForSession(tenant)}`)
        .orderBy('queued_at')
        .orderBy('id')
        .limit(1)
        .forUpdate()
        .skipLocked(),
    )
    .returningAll()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { id, attempt, stalled, call_began: callBegan, input } = row;
  const { snapshot, snapshot_on: placement, since, last_at: at, last_sequence, last_path } = row;
  const hasProgress = snapshot !== null && since !== null && at !== null && last_sequence !== null;
  const progress = hasProgress
    ? { snapshot, placement, since, after: { at, sequence: last_sequence, path: last_path ?? undefined } }
    : undefined;
  const document: JobDocument = JSON.parse(row.full_document ?? row.document);
  return { tenant, id, type, attempt, stalled, callBegan, input, progress, document };
}

/** Extends the lease of the worker. False if the worker no longer leases the job. */
export async function extendLease(db: Database, job: TakenJob): Promise<boolean> {
  const { numUpdatedRows } = await leasedJob(db, job)
    .set({ held_until: later(jobLease) })
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Returns a job to the queue. Any worker can take it after that many milliseconds. */
export async function requeue(db: Database, job: TakenJob, milliseconds: number): Promise<void> {
  await leasedJob(db, job)
    .set({ held_until: milliseconds === 0 ? null : later(milliseconds) })
    .execute();
}

/** Returns jobs whose worker is dead or whose delay is over to the queue, for all tenants. Returns their number. */
export async function releaseExpiredJobs(db: Database, findTenants: FindTenants): Promise<bigint> {
  let freed = 0n;
  await forEachTenant(await findTenants(jobWork.expired), async (tenant) => {
    const { numUpdatedRows } = await db
      .updateTable('job')
      .set({ held_until: null })
      .where(({ and }) => and({ tenant, status: 'in_progress' }))
      .where('held_until', '<=', now)
      .executeTakeFirst();
    freed += numUpdatedRows;
  });
  return freed;
}
