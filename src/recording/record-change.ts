import type { Sealer } from '../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { Change, Outcome, RecordChanges, RecordedBy } from './change.ts';
import { findErased, findKnownErased, refuseErased } from './erased-changes.ts';
import { type BatchInput, batchInput, compareEntries, insertEntries } from './store.ts';

/**
 * Records a change in the transaction that changes the document, so that both happen or neither (contract 6). `now`: in
 * milliseconds since 1970. `person`: the author, if signed in with a company's account.
 */
export async function recordChange(
  transaction: DatabaseTransaction,
  tenant: string,
  change: Change,
  now: number,
  person?: RecordedBy['person'],
): Promise<Outcome> {
  const [outcome] = await recordChanges(transaction, tenant, [change], now, { way: 'service', person });
  if (outcome === undefined) throw new Error('a change was recorded without an outcome');
  return outcome;
}

/**
 * Records changes in one transaction. Outcomes are in the order of the changes. With a sealer, erased changes count as
 * duplicates; throws a serialization failure if another process erased one concurrently.
 */
export async function recordChanges(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
  now: number,
  recordedBy: RecordedBy,
  sealer?: Sealer,
): Promise<readonly Outcome[]> {
  return await recordUnerased(transaction, tenant, changes, { now, recordedBy, sealer });
}

interface Recording {
  now: number;
  recordedBy: RecordedBy;
  /** Missing if the changes cannot be sent again. */
  sealer: Sealer | undefined;
  /** The input of all changes, if built in advance. */
  input?: BatchInput;
}

/** Records the changes that were not erased; erased ones are duplicates. */
async function recordUnerased(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
  { now, recordedBy, sealer, input }: Recording,
): Promise<readonly Outcome[]> {
  const erased = sealer && (await findKnownErased(transaction, sealer, tenant, changes));
  const isOpen = (index: number) => erased?.[index] !== true;
  const open = changes.filter((_change, index) => isOpen(index));
  const ofOpen = input !== undefined && open.length === changes.length ? input : batchInput(tenant, open);
  const { outcomes, hasErased } = await recordInput(transaction, tenant, ofOpen, now, recordedBy);
  if (hasErased && sealer !== undefined) {
    const recorded = open.filter((_change, index) => outcomes[index] === 'recorded');
    await refuseErased(transaction, sealer, tenant, recorded);
  }
  // A duplicate of an entry erased between two statements has nothing to compare with.
  const lost = hasErased ? open.filter((_change, index) => outcomes[index] === 'expired') : [];
  const erasedSince = sealer && lost.length > 0 ? await findErased(transaction, sealer, tenant, lost) : [];
  const duplicates = new Set(lost.filter((_change, index) => erasedSince[index] === true));
  const remaining = outcomes.values();
  return changes.map((change, index) => {
    const outcome = isOpen(index) ? remaining.next().value : 'duplicate';
    return duplicates.has(change) ? 'duplicate' : (outcome ?? 'conflict');
  });
}

// Recorders with the same changes in different order may deadlock. One of them succeeds each time, so there are a few
// more retries than recorders.
export const maxRetries = 20;

/** The recorder of imports: a transaction per batch, retried if it fails to serialize. */
export function createRecorder(db: Database, tenant: string, now: () => number, sealer?: Sealer): RecordChanges {
  const prepare = (batch: readonly Change[]) => {
    const input = batchInput(tenant, batch);
    return () =>
      inTransaction(
        db,
        (transaction) =>
          recordUnerased(transaction, tenant, batch, { now: now(), recordedBy: { way: 'import' }, sealer, input }),
        { retries: maxRetries },
      );
  };
  return Object.assign((batch: readonly Change[]) => prepare(batch)(), { prepare });
}

async function recordInput(
  transaction: DatabaseTransaction,
  tenant: string,
  input: BatchInput,
  now: number,
  recordedBy: RecordedBy,
): Promise<{ outcomes: readonly Outcome[]; hasErased: boolean }> {
  const { changes } = input;
  if (changes.length === 0) return { outcomes: [], hasErased: false };
  const { horizon, inserted, hasErased } = await insertEntries(transaction, tenant, now, input, recordedBy);
  if (inserted === 'all') return { outcomes: changes.map(() => 'recorded'), hasErased };
  const fresh = new Set(inserted.map(({ at, identity }) => `${at} ${identity.replaceAll('-', '')}`));
  const known = changes.map(({ at, identity }): Outcome | undefined => {
    if (at < horizon) return 'expired';
    // Among equal identities in a batch, the first was inserted.
    return fresh.delete(`${at} ${Buffer.from(identity).toString('hex')}`) ? 'recorded' : undefined;
  });
  const existing = changes.filter((_change, index) => known[index] === undefined);
  const same = (existing.length === 0 ? [] : await compareEntries(transaction, tenant, existing)).values();
  const outcomes = known.map((outcome): Outcome => {
    if (outcome !== undefined) return outcome;
    const isSame = same.next().value;
    // Retention may have dropped the entry between the two statements.
    return isSame === undefined ? 'expired' : isSame ? 'duplicate' : 'conflict';
  });
  return { outcomes, hasErased };
}
