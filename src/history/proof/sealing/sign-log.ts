import type { DatabaseTransaction } from '../../../postgres/database.ts';
import { openCheckpoint, signCheckpoint } from '../tlog/checkpoint.ts';
import type { NewestCheckpoint } from '../tlog/checkpoint-file.ts';
import { hashOfRange } from '../tlog/merkle.ts';
import { readTreeSize } from '../tree/leaf-store.ts';
import { type Log, storeCheckpoint } from '../tree/log-store.ts';
import { readNodes } from '../tree/tile-store.ts';
import { beginLogAfter } from './open-log.ts';
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
 * Signs the tree of the tenant as it is and publishes the checkpoint, in the transaction of the caller, who has the lock of the proof. The order
 * makes that no log ever has two checkpoints that disagree: the leaves are committed; the tree extends all that the key signed for the log; the
 * checkpoint is on disk beside the key; then it is published. A tree that does not extend it (a database that was set back) gets a new log.
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
