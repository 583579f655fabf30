import { sql } from 'kysely';
import type { Connection } from '../../postgres/database.ts';

/** Notes the result of a check of a tenant's history; `at` in milliseconds since 1970. */
export async function storeCheck(
  db: Connection,
  tenant: string,
  { at, isRight }: { readonly at: number; readonly isRight: boolean },
): Promise<void> {
  await sql`update proof_log set checked_at = ${new Date(at)}, check_right = ${isRight}
    where tenant = ${tenant} and ended is null`.execute(db);
}

/**
 * How many tenants have a log that began in the last seven days because the database was set back; undefined where
 * nothing is sealed.
 */
export async function countSetBack(db: Connection, now: number): Promise<number | undefined> {
  const since = new Date(now - 7 * 86_400_000).toISOString();
  const { rows } = await sql<{ logs: number; setBack: number }>`
    select count(*) as logs, count(distinct l.tenant) filter (
        where r.body like '%"what":"restore"%' and substring(r.body from '"at":"([^"]*)"') > ${since}::text) as "setBack"
      from proof_log l left join change_receipt r on r.tenant = l.tenant and r.position = l.receipt`.execute(db);
  return rows[0] === undefined || rows[0].logs === 0 ? undefined : rows[0].setBack;
}

/** How many histories were not what was sealed when they were checked last; undefined where none was checked. */
export async function countAltered(db: Connection): Promise<number | undefined> {
  const { rows } = await sql<{ checked: number; altered: number }>`
    select count(*) as checked, count(*) filter (where not check_right) as altered
      from proof_log where ended is null and check_right is not null`.execute(db);
  return rows[0] === undefined || rows[0].checked === 0 ? undefined : rows[0].altered;
}
