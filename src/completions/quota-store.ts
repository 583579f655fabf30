import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import type { Statements } from '../db/statements.ts';
import { type FindTenants, forEachTenant, type TenantWork } from '../db/tenants/tenants-with.ts';
import './tables.ts';

export interface Tokens {
  input: number;
  output: number;
}

export interface QuotaState {
  used: Tokens;
  reserved: Tokens;
}

export type Decision = { outcome: 'reserved'; granted: number } | { outcome: 'wait' } | { outcome: 'exceeded' };

/** The used tokens, which replace a reservation. An undefined figure means the reserved one. */
export interface Settlement {
  reservation: string;
  input: number | undefined;
  output: number | undefined;
}

export interface Want {
  reservation: string;
  inputBound: number;
  outputCap: number;
  /** Milliseconds. */
  lease: number;
}

// How long the table keeps charged reservations, so that late figures can correct them.
const correctable = '1 day';

/**
 * Settles, then reserves, in one transaction that is not durable yet. Returns the decisions in the order of the wants.
 */
export async function applyToQuota(
  pool: Statements,
  tenant: string,
  { settlements, wants }: { settlements: readonly Settlement[]; wants: readonly Want[] },
  { limits, minOutput }: { limits: Tokens; minOutput: number },
): Promise<Decision[]> {
  const { rows } = await pool.query<{ outcome: string; granted: number }>({
    name: 'completion_quota_apply',
    text: `select outcome, granted
             from completion_quota_apply($1, $2, $3, $4, $5, $6, $7, $8::interval[], $9, $10, $11)`,
    values: [
      tenant,
      settlements.map(({ reservation }) => reservation),
      settlements.map(({ input }) => input ?? null),
      settlements.map(({ output }) => output ?? null),
      wants.map(({ reservation }) => reservation),
      wants.map(({ inputBound }) => inputBound),
      wants.map(({ outputCap }) => outputCap),
      wants.map(({ lease }) => `${lease} milliseconds`),
      minOutput,
      limits.input,
      limits.output,
    ],
  });
  return rows.map(({ outcome, granted }) => {
    if (outcome === 'reserved') return { outcome, granted };
    if (outcome === 'wait' || outcome === 'exceeded') return { outcome };
    throw new Error('the quota gave a decision that is none');
  });
}

/** When it returns, all earlier commits of these tenants are durable, as the servers' synchronous_commit defines it. */
export async function makeDurable(pool: Statements, tenants: readonly string[]): Promise<void> {
  const flush = async (tenant: string) => {
    const { rows } = await pool.query<{ all: boolean }>({
      name: 'completion_durable',
      text: 'select completion_durable($1) as all',
      values: [tenant],
    });
    return rows[0]?.all === true;
  };
  const [first, ...others] = tenants;
  // On one server, the flush for one tenant includes the commits of all.
  if (first !== undefined && !(await flush(first))) await Promise.all(others.map(flush));
}

export async function readQuota(db: Database, tenant: string): Promise<QuotaState> {
  const row = await db.selectFrom('completion_quota').selectAll().where('tenant', '=', tenant).executeTakeFirst();
  return {
    used: { input: row?.input_used ?? 0, output: row?.output_used ?? 0 },
    reserved: { input: row?.input_reserved ?? 0, output: row?.output_reserved ?? 0 },
  };
}

/** Charges the tenant's expired reservations, which belong to dead processes. */
export async function chargeExpired(db: Database, tenant: string): Promise<void> {
  const expired = await db
    .selectFrom('completion_reservation')
    .select('reservation')
    .where('tenant', '=', tenant)
    .where('charged', '=', false)
    .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
    .limit(1)
    .executeTakeFirst();
  if (expired === undefined) return;
  await db.transaction().execute(async (transaction) => {
    await transaction
      .selectFrom('completion_quota')
      .select('tenant')
      .where('tenant', '=', tenant)
      .forUpdate()
      .executeTakeFirst();
    await sql`select completion_quota_charge_expired(${tenant})`.execute(transaction);
  });
}

/** Reservations of dead processes, and those that were charged and are too old for a correction. */
export const reservationWork = {
  expired: { table: 'completion_reservation', condition: 'not charged and expires_at <= statement_timestamp()' },
  old: {
    table: 'completion_reservation',
    condition: `charged and expires_at < statement_timestamp() - interval '${correctable}'`,
  },
} as const satisfies Record<string, TenantWork>;

/** Drops charged reservations that are too old for a correction. */
export async function dropCharged(db: Database, findTenants: FindTenants): Promise<void> {
  await forEachTenant(await findTenants(reservationWork.old), (tenant) =>
    db
      .deleteFrom('completion_reservation')
      .where('tenant', '=', tenant)
      .where('charged', '=', true)
      .where('expires_at', '<', sql<Date>`statement_timestamp() - ${correctable}::interval`)
      .execute(),
  );
}
