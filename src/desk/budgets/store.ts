import { type Generated, type RawBuilder, sql } from 'kysely';
import type { DocumentRows } from '../../pagination/paginator.ts';
import type { Connection, Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { TenantWork } from '../../postgres/tenants/tenants-with.ts';
import { documentTable } from '../../recording/documents/document-table.ts';

/** The part of a budget that reservations need. */
export interface BudgetTerms {
  by: 'all' | 'client' | 'agent' | 'model' | 'user' | 'each user';
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
  name: Generated<string>;
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

/** E-mails of a budget in a period: of a budget of each user, all users together. */
export const maxAlertsOfPeriod = 1_000;

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

/** The share of one user in a budget of each user. */
export interface UserFigures extends Omit<BudgetFigures, 'first' | 'last'> {
  /** '': the calls without a user. */
  user: string;
}

/** Pico-USD as US dollars, or tokens. */
function shownAmount(amount: RawBuilder<unknown>, inTokens: boolean): RawBuilder<string> {
  return sql<string>`trim_scale(${amount} * case when ${inTokens} then 1 else 0.000000000001 end)::text`;
}

/**
 * The users with most use in the period that contains this day, most first. `isFixed`: only those that keys fix, which
 * no text of a request can add to.
 */
export async function readUserFigures(
  db: Connection,
  tenant: string,
  { period, limitTokens }: BudgetTerms,
  { day, isFixed, max }: { day: number; isFixed: boolean; max: number },
): Promise<{ first: number; users: UserFigures[] }> {
  const inTokens = limitTokens !== null;
  const { rows } = await sql<{ first: number } & { [Name in keyof UserFigures]: UserFigures[Name] | null }>`
    select d.first, u.name as "user", u.spent::text as units, ${shownAmount(sql`u.spent`, inTokens)} as spent,
        ${shownAmount(sql`u.held`, inTokens)} as reserved
      from budget_days(${period}, ${day}) as d
      left join lateral (
        select * from budget_users(${tenant}, ${inTokens}, d.first, d.last, ${isFixed}) as f
          where f.spent + f.held > 0 order by f.spent + f.held desc, f.name collate "C" limit ${max}) as u on true
      order by u.spent + u.held desc, u.name collate "C"`.execute(db);
  const users = rows.flatMap(({ first: _, user, units, spent, reserved }) =>
    user === null || units === null || spent === null || reserved === null ? [] : [{ user, units, spent, reserved }],
  );
  return { first: rows[0]?.first ?? 0, users };
}

/** The figures of the period that contains this day. Not of a budget of each user. */
export async function readFigures(
  db: Connection,
  tenant: string,
  { by, name, period, limitTokens }: BudgetTerms,
  day: number,
): Promise<BudgetFigures> {
  const inTokens = limitTokens !== null;
  const { rows } = await sql<BudgetFigures>`
    select first, last,
                spent::text as units, ${shownAmount(sql`spent`, inTokens)} as spent, ${shownAmount(sql`held`, inTokens)} as reserved
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

interface Alert {
  readonly first: number;
  readonly threshold: number;
  readonly name: string;
}

/** The same text for the same alert of a budget. */
export function alertKey({ first, threshold, name }: Alert): string {
  return `${first} ${threshold} ${name}`;
}

/** The noted alerts of a budget, by key. */
export async function readAlerts(db: Database, tenant: string, budget: string): Promise<ReadonlySet<string>> {
  const rows = await db
    .selectFrom('budget_alert')
    .select(['first', 'threshold', 'name'])
    .where(({ and }) => and({ tenant, budget }))
    .execute();
  return new Set(rows.map(alertKey));
}

/**
 * Notes that a period has reached a threshold, for a user or `''`. False if noted before, if the budget is gone, or if
 * the period has as many notes as it can.
 */
export async function noteAlert(
  transaction: DatabaseTransaction,
  tenant: string,
  alert: Alert & { budget: string },
): Promise<boolean> {
  if ((await budgetTable.find(transaction, tenant, alert.budget, { lock: true })) === undefined) return false;
  const { noted } = await transaction
    .selectFrom('budget_alert')
    .select(({ fn }) => fn.countAll<number>().as('noted'))
    .where(({ and }) => and({ tenant, budget: alert.budget, first: alert.first }))
    .executeTakeFirstOrThrow();
  if (noted >= maxAlertsOfPeriod) return false;
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
