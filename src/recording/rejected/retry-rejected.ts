import type { Database } from '../../db/database.ts';
import { inTransaction } from '../../db/transaction.ts';
import { JsonTape } from '../../json/tape.ts';
import type { Sealer } from '../../sealing.ts';
import { type BatchCounts, type GivenChange, RejectedChangesError, type TakeChanges } from '../batch.ts';
import { readImportLine } from '../import-line.ts';
import { Occurrences } from '../occurrences.ts';
import { maxRetries } from '../record-change.ts';
import { type KeptChange, openKept } from './kept-change.ts';
import { deleteRejected, type ListedRejection, listRejected, updateReason } from './rejected-store.ts';

const rowsAtOnce = 100;

/**
 * Tries rejected changes of a tenant, or of all, once more. What is taken now is kept no longer; the others stay, with their reason as
 * it is now. A change without content cannot be tried and counts as rejected. Each is a transaction of its own.
 */
export async function retryRejected(
  { db, sealer, take }: { db: Database; sealer: Sealer; take: TakeChanges },
  tenant: string | undefined,
  signal?: AbortSignal,
): Promise<BatchCounts> {
  const sum: BatchCounts = { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: 0 };
  let after: { tenant: string; id: string } | undefined;
  for (;;) {
    const rows = await listRejected(db, tenant, { after, count: rowsAtOnce });
    for (const row of rows) {
      signal?.throwIfAborted();
      const counts = await retryOne(db, sealer, take, row);
      for (const name of Object.keys(sum) as (keyof BatchCounts)[]) sum[name] += counts[name] ?? 0;
      after = row;
    }
    if (rows.length < rowsAtOnce) return sum;
  }
}

async function retryOne(
  db: Database,
  sealer: Sealer,
  take: TakeChanges,
  { tenant, id, way, recorder, position, reason, sealed }: ListedRejection,
): Promise<Partial<BatchCounts>> {
  if (sealed === null) return { read: 1, rejected: 1 };
  const kept = openKept(sealer, tenant, id, sealed);
  const recordedBy = recorder === null ? { way } : { way, by: recorder };
  const batch = { tenant: kept.tenant, recordedBy, changes: [givenOf(kept, position)], strict: true };
  try {
    return await inTransaction(
      db,
      async (transaction) => {
        // Somebody else may have retried or dropped it meanwhile.
        if (!(await deleteRejected(transaction, tenant, id))) return {};
        return (await take(transaction, batch)).counts;
      },
      { retries: maxRetries },
    );
  } catch (error) {
    if (!(error instanceof RejectedChangesError)) throw error;
    const now = error.rejected[0]?.reason ?? reason;
    if (now !== reason) await updateReason(db, tenant, id, now);
    return { read: 1, rejected: 1 };
  }
}

function givenOf({ line, identity }: KeptChange, position: string): GivenChange {
  const occurrences = new Occurrences();
  const read = readImportLine(Buffer.from(line), new JsonTape(), occurrences);
  occurrences.close();
  const source = { position, line: () => line };
  if (read.kind === 'rejected') return { ...read, source };
  if (read.kind === 'unchanged') return read;
  const change = identity === undefined ? read.change : { ...read.change, identity: Buffer.from(identity, 'hex') };
  return { kind: 'change', change, source };
}
