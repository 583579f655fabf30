import { sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Connection, Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { documentTable } from '../../recording/documents/document-table.ts';

/** The part of a budget that reservations need. */
export interface BudgetTerms {
  by: 'all' | 'client' | 'agent' | 'model';
  name: string;
  period: 'day' | 'month' | 'lifetime';
  /** Pico-USD; otherwise `limitTokens` applies. */
  limitCost: string | null;
  limitTokens: number | null;
}

interface BudgetTable {
  tenant: string;
  id: string;
  version: number;
  document: string;
  fields: string;
  by: BudgetTerms['by'];
  name: string;
  period: BudgetTerms['period'];
  limit_cost: string | null;
  limit_tokens: number | null;
}

interface BudgetAlertTable {
  tenant: string;
  budget: string;
  first: number;
  threshold: number;
}

interface BudgetDueTable {
  tenant: string;
  changes: number;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    budget: BudgetTable;
    budget_alert: BudgetAlertTable;
    budget_due: BudgetDueTable;
  }
}

export const budgetTable = documentTable<BudgetTerms>('budget', {
  by: 'by',
  name: 'name',
  period: 'period',
  limitCost: 'limit_cost',
  limitTokens: 'limit_tokens',
});

/** The budgets of a tenant, for lists. */
export function budgetRows(tenant: string): DocumentRows {
  return { from: sql`budget`, where: sql`tenant = ${tenant}` };
}

export async function countBudgets(transaction: DatabaseTransaction, tenant: string): Promise<number> {
  const { count } = await transaction
    .selectFrom('budget')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('tenant', '=', tenant)
    .executeTakeFirstOrThrow();
  return count;
}

/** Spent by the period's calls, and reserved by calls in progress: US dollars or tokens, as decimal texts. */
export interface BudgetFigures {
  /** The first day of the period, as days since 1970. */
  first: number;
  last: number;
  spent: string;
  reserved: string;
  /** The spent amount as an integer: pico-USD or tokens. */
  units: string;
}

/** The figures of the period that contains this day. */
export async function readFigures(
  db: Connection,
  tenant: string,
  { by, name, period, limitTokens }: BudgetTerms,
  day: number,
): Promise<BudgetFigures> {
  const inTokens = limitTokens !== null;
  const unit = sql`case when ${inTokens} then 1 else 0.000000000001 end`;
  const { rows } = await sql<BudgetFigures>`
    select first, last,
                spent::text as units, trim_scale(spent * ${unit})::text as spent, trim_scale(held * ${unit})::text as reserved
      from budget_figures(${tenant}, ${by}, ${name}, ${period}, ${inTokens}, ${day})`.execute(db);
  const [figures] = rows;
  if (figures === undefined) throw new Error('a function has no row');
  return figures;
}

/** Tenants with budgets whose totals have changed. */
export const dueBudgets = { table: 'budget_due', condition: 'true' } as const satisfies TenantWork;

/** The number of changes of the tenant's totals; undefined without new ones. */
export async function changesOf(db: Database, tenant: string): Promise<number | undefined> {
  const row = await db.selectFrom('budget_due').select('changes').where('tenant', '=', tenant).executeTakeFirst();
  return row?.changes;
}

/** Notes the check. The tenant is due again if its totals have changed since. */
export async function noteLooked(db: Database, tenant: string, changes: number): Promise<void> {
  await db.deleteFrom('budget_due').where('tenant', '=', tenant).where('changes', '=', changes).execute();
}

/** All budgets of a tenant, as stored. */
export async function readBudgets(db: Database, tenant: string): Promise<(BudgetTerms & { document: string })[]> {
  return await db
    .selectFrom('budget')
    .select(['document', 'by', 'name', 'period', 'limit_cost as limitCost', 'limit_tokens as limitTokens'])
    .where('tenant', '=', tenant)
    .orderBy('id')
    .execute();
}

/** Notes that a period has reached a threshold. False if noted before, or if the budget is gone. */
export async function noteAlert(
  transaction: DatabaseTransaction,
  tenant: string,
  alert: { budget: string; first: number; threshold: number },
): Promise<boolean> {
  if ((await budgetTable.find(transaction, tenant, alert.budget, { lock: true })) === undefined) return false;
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('budget_alert')
    .values({ tenant, ...alert })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

/** Drops notes of periods that are no longer checked: of a day or a month that began before this day. */
export async function dropAlerts(db: Database, tenant: string, before: number): Promise<void> {
  await db
    .deleteFrom('budget_alert')
    .where('tenant', '=', tenant)
    .where('first', '>', 0)
    .where('first', '<', before)
    .execute();
}
