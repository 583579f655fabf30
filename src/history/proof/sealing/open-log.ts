import type { Database, DatabaseTransaction } from '../../../postgres/database.ts';
import { inTransaction } from '../../../postgres/transaction.ts';
import { type Receipt, writeReceipt } from '../../../recording/receipt-store.ts';
import { lastPosition } from '../../feed/positions.ts';
import { type Log, readLog, storeFirstReceipt, storeLog } from '../tree/log-store.ts';
import { lockProof } from '../tree/proof-lock.ts';
import type { LogSigner } from './signer.ts';

/** The last checkpoint of a log that has ended. */
interface LastCheckpoint {
  readonly origin: string;
  readonly checkpoint: string | null;
  /** The leaves of the last one that this database published: the new log surely takes over these. */
  readonly size: number;
}

/**
 * The log that the key signs for the tenant. Makes one where there is none, or where the last one has another key. `sealing`: something
 * is about to be sealed, so the log gets its receipt.
 */
export async function openLog(
  db: Database,
  tenant: string,
  { signer, now, sealing }: { signer: LogSigner; now: () => number; sealing: boolean },
): Promise<Log> {
  const known = await readLog(db, tenant);
  if (known !== undefined && isOf(known, signer) && (known.receipt !== null || !sealing)) return known;
  return await inTransaction(db, async (transaction) => {
    await lockProof(transaction, tenant);
    const log = await readLog(transaction, tenant);
    if (log === undefined) {
      await storeLog(transaction, tenant, { ...newLog(signer), receipt: null });
    } else if (!isOf(log, signer)) {
      if (log.receipt === null) await storeLog(transaction, tenant, { ...newLog(signer), receipt: null });
      else await beginLogAfter(transaction, tenant, log, { signer, now, what: 'new key' });
    }
    const open = (await readLog(transaction, tenant)) as Log;
    if (!sealing || open.receipt !== null) return open;
    const { position } = await lastPosition(transaction, tenant);
    const [receipt = 0] = await writeReceipt(transaction, tenant, {
      what: 'first sealing',
      positions: position === 0 ? [] : [[1, position]],
      ...circumstances(open.origin, now),
    });
    await storeFirstReceipt(transaction, tenant, open.origin, receipt);
    return { ...open, receipt };
  });
}

/** Begins a log over the same leaves. Its receipt names the last checkpoint of the one before. */
export async function beginLogAfter(
  transaction: DatabaseTransaction,
  tenant: string,
  before: LastCheckpoint,
  { signer, now, what }: { signer: LogSigner; now: () => number; what: Receipt['what'] & ('new key' | 'restore') },
): Promise<void> {
  const log = newLog(signer);
  const [receipt = 0] = await writeReceipt(transaction, tenant, {
    what,
    positions: [],
    ...circumstances(log.origin, now),
    before: { origin: before.origin, checkpoint: before.checkpoint },
    kept: before.size,
  });
  await storeLog(transaction, tenant, { ...log, receipt });
}

function newLog(signer: LogSigner): Pick<Log, 'origin' | 'vkey'> {
  const origin = signer.newOrigin();
  return { origin, vkey: signer.keyOf(origin) };
}

function isOf({ origin, vkey }: Log, signer: LogSigner): boolean {
  return signer.keyOf(origin) === vkey;
}

function circumstances(origin: string, now: () => number) {
  return { at: new Date(now()).toISOString(), by: 'annals', log: origin } as const;
}
