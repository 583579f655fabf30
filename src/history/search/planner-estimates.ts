import { type RawBuilder, sql } from 'kysely';
import type { DatabaseTransaction } from '../../postgres/database.ts';

/** With such estimates, the planner may read all rows of a tenant for each one of them. */
const maxDoubted = 100;
/** A tenant with fewer entries needs no other plan. */
const minEntries = 200;

/**
 * Whether the planner takes a tenant that has many entries for one that has next to none. Its statistics do not know a tenant
 * that is new beside larger ones, until the tables are analysed.
 */
export async function isUnderestimated(transaction: DatabaseTransaction, tenant: string): Promise<boolean> {
  const entries = sql`select from change_entry where tenant = ${tenant}`;
  const { rows: plans } = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`
    explain (format json) ${entries}`.execute(transaction);
  const estimate = plans[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
  if (estimate >= maxDoubted) return false;
  const { rows } = await sql<{ many: boolean }>`
    select count(*) = ${minEntries} as many from (${entries} limit ${minEntries}) as entries`.execute(transaction);
  return rows[0]?.many ?? false;
}

/**
 * Runs a statement without nested loops. Between two tables whose rows the planner underestimates, a nested loop reads all
 * rows of the one for each row of the other. What takes their place (hashes, merges) reads each row once.
 */
export async function runWithoutNestedLoops<Row>(
  transaction: DatabaseTransaction,
  statement: RawBuilder<Row>,
): Promise<Row[]> {
  const { rows: settings } = await sql<{ before: string }>`
    select current_setting('enable_nestloop') as before, set_config('enable_nestloop', 'off', true)`.execute(
    transaction,
  );
  const { rows } = await statement.execute(transaction);
  await sql`select set_config('enable_nestloop', ${settings[0]?.before ?? 'on'}, true)`.execute(transaction);
  return rows;
}
