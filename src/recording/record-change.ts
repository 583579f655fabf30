import type { Sealer } from '../core/sealing.ts';
import type { Database, DatabaseTransaction } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';
import type { Change, Outcome, RecordBatch, RecordedBy } from './change.ts';
import { type EntryColumns, entryColumns } from './entry-columns.ts';
import { findErased, findKnownErased, refuseErased } from './erased/repeats.ts';
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

/**
 * Records changes in one transaction. The outcomes come in the order of the changes. With a sealer a change that was erased counts as
 * a duplicate; where another process has erased it meanwhile, this throws a serialization failure.
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
  /** Left out: nobody can send the changes again. */
  sealer: Sealer | undefined;
  /** The columns of all changes. */
  prepared?: Prepared;
}

/** Records those changes that were not erased. Those that were are duplicates. */
async function recordUnerased(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly Change[],
  { now, recordedBy, sealer, prepared }: Recording,
): Promise<readonly Outcome[]> {
  const erased = sealer && (await findKnownErased(transaction, sealer, tenant, changes));
  const isOpen = (place: number) => erased?.[place] !== true;
  const open = changes.filter((_change, place) => isOpen(place));
  const ready = prepared !== undefined && open.length === changes.length ? prepared : prepare(tenant, open);
  const { outcomes, hasErased } = await recordPrepared(transaction, tenant, ready, now, recordedBy);
  if (hasErased && sealer !== undefined) {
    const recorded = open.filter((_change, place) => outcomes[place] === 'recorded');
    await refuseErased(transaction, sealer, tenant, recorded);
  }
  // Who was a duplicate of what was erased between two statements finds nothing to compare with.
  const lost = hasErased ? open.filter((_change, place) => outcomes[place] === 'expired') : [];
  const erasedSince = sealer && lost.length > 0 ? await findErased(transaction, sealer, tenant, lost) : [];
  const duplicates = new Set(lost.filter((_change, place) => erasedSince[place] === true));
  const left = outcomes.values();
  return changes.map((change, place) => {
    const outcome = isOpen(place) ? left.next().value : 'duplicate';
    return duplicates.has(change) ? 'duplicate' : (outcome ?? 'conflict');
  });
}

// Recorders with the same changes in another order may deadlock. One of them wins each round, so there are a few more
// rounds than recorders.
export const maxRetries = 20;

/** The recorder of the import. Every batch is a transaction of its own, which is retried where it loses a race. */
export function createRecorder(db: Database, tenant: string, now: () => number, sealer?: Sealer): RecordBatch {
  const prepared = (batch: readonly Change[]) => {
    const ready = prepare(tenant, batch);
    const recording = () => ({ now: now(), recordedBy: { way: 'import' }, sealer, prepared: ready }) as const;
    return () =>
      inTransaction(db, (transaction) => recordUnerased(transaction, tenant, batch, recording()), {
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
): Promise<{ outcomes: readonly Outcome[]; hasErased: boolean }> {
  if (columns.ats.length === 0) return { outcomes: [], hasErased: false };
  const { horizon, inserted, hasErased } = await insertEntries(transaction, tenant, now, parameters, recordedBy);
  if (inserted === 'all') return { outcomes: columns.ats.map(() => 'recorded'), hasErased };
  const fresh = new Set(inserted.map(({ at, identity }) => keyOf(at, identity.replaceAll('-', ''))));
  const outcomes = columns.ats.map((at, place): Outcome | undefined => {
    if (at < horizon) return 'expired';
    // Of equal identities in one batch the first was inserted.
    const identity = Buffer.from(columns.identities[place] ?? []).toString('hex');
    return fresh.delete(keyOf(at, identity)) ? 'recorded' : undefined;
  });
  return { outcomes: await settle(transaction, tenant, columns, outcomes), hasErased };
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
