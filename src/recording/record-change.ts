import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { Change, Outcome, RecordBatch, RecordedBy } from './change.ts';
import { type EntryColumns, entryColumns } from './entry-columns.ts';
import { compareEntries, type EntryParameters, entryParameters, insertEntries } from './store.ts';

/**
 * Records one change of a document in the transaction that changes the document, so that both happen or neither
 * (contract 6). `now` is in milliseconds since 1970; `person` wrote it, with a company's account.
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

/** Records changes in one transaction. The outcomes come in the order of the changes. */
export async function recordChanges(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
  now: number,
  recordedBy: RecordedBy,
): Promise<readonly Outcome[]> {
  return await recordPrepared(transaction, tenant, prepare(tenant, changes), now, recordedBy);
}

// Recorders with the same changes in another order may deadlock. One of them wins each round, so there are a few more
// rounds than recorders.
export const maxRetries = 20;

/** The recorder of the import. Every batch is a transaction of its own, which is retried where it loses a race. */
export function createRecorder(db: Database, tenant: string, now: () => number): RecordBatch {
  const prepared = (batch: readonly Change[]) => {
    const ready = prepare(tenant, batch);
    return () =>
      inTransaction(db, (transaction) => recordPrepared(transaction, tenant, ready, now(), { way: 'import' }), {
        retries: maxRetries,
      });
  };
  return Object.assign((batch: readonly Change[]) => prepared(batch)(), { prepare: prepared });
}

interface Prepared {
  columns: EntryColumns;
  parameters: EntryParameters;
}

function prepare(tenant: string, changes: readonly Change[]): Prepared {
  const columns = entryColumns(tenant, changes);
  return { columns, parameters: entryParameters(columns) };
}

async function recordPrepared(
  transaction: DatabaseTransaction,
  tenant: string,
  { columns, parameters }: Prepared,
  now: number,
  recordedBy: RecordedBy,
): Promise<readonly Outcome[]> {
  if (columns.ats.length === 0) return [];
  const { horizon, inserted } = await insertEntries(transaction, tenant, now, parameters, recordedBy);
  if (inserted === 'all') return columns.ats.map(() => 'recorded');
  const fresh = new Set(inserted.map(({ at, identity }) => keyOf(at, identity.replaceAll('-', ''))));
  const outcomes = columns.ats.map((at, place): Outcome | undefined => {
    if (at < horizon) return 'expired';
    // Of equal identities in one batch the first was inserted.
    const identity = Buffer.from(columns.identities[place] ?? []).toString('hex');
    return fresh.delete(keyOf(at, identity)) ? 'recorded' : undefined;
  });
  return await settle(transaction, tenant, columns, outcomes);
}

/** Tells duplicates of recorded entries from conflicts under the same identity. */
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
      // Retention may drop an entry between the two statements. Such an entry is expired.
      const equal = same[index];
      return [place, equal === undefined ? 'expired' : equal ? 'duplicate' : 'conflict'];
    }),
  );
  return outcomes.map((outcome, place) => outcome ?? settled.get(place) ?? 'conflict');
}

function keyOf(at: number, identity: string): string {
  return `${at} ${identity}`;
}
