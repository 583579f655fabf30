import type { Database } from '../db/database.ts';
import './tables.ts';

/** The token issuer where no public address is set. All processes on one database have the same (contract: settings). */
export async function readInstallationIssuer(db: Database): Promise<string> {
  const { id } = await db.selectFrom('installation').select('id').executeTakeFirstOrThrow();
  return `urn:uuid:${id}`;
}
