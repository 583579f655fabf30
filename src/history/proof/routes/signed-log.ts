import { AnnalsError } from '../../../core/errors.ts';
import type { Connection } from '../../../postgres/database.ts';
import { type Log, readLog } from '../tree/log-store.ts';

/** The log with its newest checkpoint. Throws resource_not_found where there is none yet. */
export async function signedLog(db: Connection, tenant: string): Promise<Log & { checkpoint: string }> {
  const log = await readLog(db, tenant);
  if (log?.checkpoint == null) {
    throw new AnnalsError(
      'resource_not_found',
      'No checkpoint of this history has been signed. Annals seals histories where ANNALS_PROOF_KEY_FILE is set, and signs them about every minute.',
    );
  }
  return { ...log, checkpoint: log.checkpoint };
}
