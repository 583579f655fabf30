import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { lastPosition } from '../../recording/positions.ts';
import { type Receipt, writeReceipt } from '../../recording/receipt-store.ts';
import { openCheckpoint, signCheckpoint } from './checkpoint.ts';
import type { NewestCheckpoint } from './checkpoint-file.ts';
import { readTreeSize } from './leaf-store.ts';
import { type Log, lockProof, readLog, readNodes, storeCheckpoint, storeFirstReceipt, storeLog } from './log-store.ts';
import { hashOfRange } from './merkle.ts';
import type { LogSigner } from './signer.ts';

/** A log that ended because the database was set back, or what the key keeps beside it. In positions. */
export interface SetBackLog {
  readonly origin: string;
  /** What the key had signed. */
  readonly signed: number;
  /** What the database has of it now. */
  readonly left: number;
}

/**
 * Signs the tree of the tenant as it is and publishes the checkpoint, in the transaction of the caller, who has the
 * lock of the proof. The order makes that no log ever has two checkpoints that disagree: the leaves are committed; the
 * tree extends all that the key signed for the log; the checkpoint is on disk beside the key; then it is published. A
 * tree that does not extend it (a database that was set back) gets a new log.
 */
export async function signLog(
  transaction: DatabaseTransaction,
  tenant: string,
  log: Log,
  { signer, now }: { signer: LogSigner; now: () => number },
): Promise<'signed' | 'waits' | SetBackLog> {
  const size = await readTreeSize(transaction, tenant);
  const { origin, receipt } = log;
  // The first checkpoint of a log has its receipt.
  if (receipt === null || size < receipt) return 'waits';
  const own = signer.of(origin);
  const newest = signer.newest.newest(origin);
  const published = log.checkpoint === null ? undefined : openCheckpoint(log.checkpoint, own);
  // The file of the key does not know what was published: it may have signed more.
  const isForgotten = newest === undefined && log.checkpoint !== null;
  const signed = [newest, typeof published === 'string' ? undefined : published].filter((one) => one !== undefined);
  const extend = await Promise.all(signed.map((one) => extendsCheckpoint(transaction, tenant, size, one)));
  if (isForgotten || typeof published === 'string' || extend.includes(false)) {
    const checkpoint = newest?.note ?? log.checkpoint;
    await beginLogAfter(transaction, tenant, { origin, checkpoint, size: log.size }, { signer, now, what: 'restore' });
    return { origin, signed: newest?.size ?? log.size, left: size };
  }
  const root = await hashOfRange([0, size], readNodes(transaction, tenant, size));
  const next: NewestCheckpoint =
    newest?.size === size ? newest : { size, root, note: signCheckpoint({ origin, size, root }, own) };
  if (next !== newest && !signer.newest.advance(origin, newest, next)) return 'waits';
  // It may be published already, with signatures of witnesses behind its own.
  const checkpoint = log.checkpoint?.startsWith(next.note) ? log.checkpoint : next.note;
  await storeCheckpoint(transaction, tenant, origin, { size, checkpoint });
  return 'signed';
}

/** Whether the tree of `size` leaves begins with that of a checkpoint. */
async function extendsCheckpoint(
  transaction: DatabaseTransaction,
  tenant: string,
  size: number,
  checkpoint: { readonly size: number; readonly root: Buffer },
): Promise<boolean> {
  if (checkpoint.size > size) return false;
  const root = await hashOfRange([0, checkpoint.size], readNodes(transaction, tenant, checkpoint.size));
  return root.equals(checkpoint.root);
}

/** The last checkpoint of a log that has ended. */
interface LastCheckpoint {
  readonly origin: string;
  readonly checkpoint: string | null;
  /** The leaves of the last one that this database published: the new log surely takes over these. */
  readonly size: number;
}

/**
 * The log that the key signs for the tenant. Makes one where there is none, or where the last one has another key.
 * `sealing`: something is about to be sealed, so the log gets its receipt.
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
