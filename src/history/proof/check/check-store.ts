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
