import type { Database } from '../../postgres/database.ts';
import './tables.ts';

/**
 * The id of the installation, a UUID. All processes on one database have the same. Where no public address is set it names
 * the token issuer (contract: settings).
 */
export async function readInstallationId(db: Database): Promise<string> {
  const { id } = await db.selectFrom('installation').select('id').executeTakeFirstOrThrow();
  return id;
}
