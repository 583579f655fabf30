import { sql } from 'kysely';
import type { Connection } from '../../../postgres/database.ts';

/** Notes the result of a check of a tenant's history; `at` in milliseconds since 1970. */
export async function storeCheck(
  db: Connection,
  tenant: string,
  { at, isRight }: { readonly at: number; readonly isRight: boolean },
): Promise<void> {
  await sql`update proof_log set checked_at = ${new Date(at)}, check_right = ${isRight}
    where tenant = ${tenant} and ended is null`.execute(db);
}

/** How many histories were not what was sealed when they were checked last; undefined where none was checked. */
export async function countAltered(db: Connection): Promise<number | undefined> {
  const { rows } = await sql<{ checked: number; altered: number }>`
    select count(*) as checked, count(*) filter (where not check_right) as altered
      from proof_log where ended is null and check_right is not null`.execute(db);
  return rows[0] === undefined || rows[0].checked === 0 ? undefined : rows[0].altered;
}
