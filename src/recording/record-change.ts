import type { Database, DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import type { Change, Outcome, RecordBatch } from './change.ts';
import { type EntryColumns, entryColumns } from './entry-columns.ts';
import { compareEntries, insertEntries } from './store.ts';

/**
 * Records one change of a document in the transaction that changes the document, so that both happen or neither
 * (contract 6). `now` is in milliseconds since 1970.
 */
export async function recordChange(
  transaction: DatabaseTransaction,
  tenant: string,
  change: Change,
  now: number,
): Promise<Outcome> {
  const [outcome] = await recordChanges(transaction, tenant, [change], now);
  if (outcome === undefined) throw new Error('a change was recorded without an outcome');
  return outcome;
}

/** Records changes in one transaction; outcomes in the order of the changes. */
export async function recordChanges(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
  now: number,
): Promise<readonly Outcome[]> {
  if (changes.length === 0) return [];
  const columns = entryColumns(changes);
  const { horizon, inserted } = await insertEntries(transaction, tenant, now, columns);
  const fresh = new Set(inserted.map((entry) => keyOf(entry.at, entry.identity)));
  const outcomes = columns.entries.map((entry): Outcome | undefined => {
    if (entry.at < horizon) return 'expired';
    // Of equal identities in one batch the first is the one that was inserted.
    return fresh.delete(keyOf(entry.at, entry.identity)) ? 'recorded' : undefined;
  });
  return await settle(transaction, tenant, columns, outcomes);
}

/** The recorder of the import: every batch is a transaction of its own, begun again where it loses a race. */
export function createRecorder(db: Database, tenant: string, now: () => number): RecordBatch {
  return (batch) =>
    inTransaction(db, (transaction) => recordChanges(transaction, tenant, batch, now()), { retries: 5 });
}

/** Tells repetitions of what is recorded already from other changes under the same identity. */
async function settle(
  transaction: DatabaseTransaction,
  tenant: string,
  columns: EntryColumns,
  outcomes: readonly (Outcome | undefined)[],
): Promise<Outcome[]> {
  const open = [...outcomes.keys()].filter((place) => outcomes[place] === undefined);
  if (open.length === 0) return outcomes.filter((outcome) => outcome !== undefined);
  const same = await compareEntries(transaction, tenant, columns, open);
  const settled = new Map(
    open.map((place, index): [number, Outcome] => {
      // Retention may drop an entry between the two statements; what it drops is expired.
      const equal = same[index];
      return [place, equal === undefined ? 'expired' : equal ? 'duplicate' : 'conflict'];
    }),
  );
  return outcomes.map((outcome, place) => outcome ?? settled.get(place) ?? 'conflict');
}

function keyOf(at: number, identity: string): string {
  return `${at} ${identity.replaceAll('-', '')}`;
}
