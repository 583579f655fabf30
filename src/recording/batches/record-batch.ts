import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import { storableText } from '../../core/storable-text.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Change, isOwnEntity, type RecordedBy, type Way } from '../change.ts';
import { recordChanges } from '../record-change.ts';
import { withNamesOfPeople } from './names-of-people.ts';
import { type ChangeSource, rejectedRow, storeRejected, unknownTenant } from './rejected-changes.ts';

/**
 * A change from a reader. `rejected`: it can never be recorded. `ignored`: excluded by the mapping. `unchanged`: an
 * update without changes.
 */
export type IncomingChange =
  | { kind: 'change'; change: Change; source: ChangeSource }
  | { kind: 'unchanged' }
  | { kind: 'ignored' }
  | { kind: 'rejected'; reason: string; source: ChangeSource };

/** The changes of a tenant to record in one transaction, in order. */
export interface IncomingBatch {
  /** As the source names it. If it is unknown or malformed, every change is rejected and stored without a tenant. */
  tenant: string;
  recordedBy: RecordedBy;
  /** The id of the client that sent them. Its rights apply to retries. */
  client?: string | undefined;
  changes: readonly IncomingChange[];
  /** Whether one rejected change fails the whole batch. */
  strict: boolean;
}

/** Changes of a batch by outcome. `read` is the sum of the others. */
export type BatchCounts = ReturnType<typeof noCounts>;

export function noCounts() {
  return { read: 0, recorded: 0, unchanged: 0, duplicate: 0, expired: 0, ignored: 0, rejected: 0 };
}

export function addCounts(sum: BatchCounts, counts: Partial<BatchCounts>): void {
  for (const name of Object.keys(sum) as (keyof BatchCounts)[]) sum[name] += counts[name] ?? 0;
}

export interface RejectedChange {
  /** 0-based index in the batch. */
  index: number;
  /** Names members and positions, never content. */
  reason: string;
}

export interface RecordedBatch {
  counts: BatchCounts;
  rejected: readonly RejectedChange[];
}

/**
 * Records a batch in the caller's transaction, and stores rejected changes in `change_rejected`. Throws
 * `RejectedChangesError` if the batch is strict or the tenant has too many; the caller must then roll back. The caller
 * must retry serialization failures (`inTransaction` with `retries: maxRetries`).
 */
export type RecordBatch = (transaction: DatabaseTransaction, batch: IncomingBatch) => Promise<RecordedBatch>;

/** The batch has rejected changes and must not continue. */
export class RejectedChangesError extends Error {
  readonly rejected: readonly RejectedChange[];
  /** Whether the tenant reached its limit of rejected changes; otherwise the batch was strict. */
  readonly isFull: boolean;

  constructor(rejected: readonly RejectedChange[], isFull: boolean) {
    super(isFull ? 'the tenant keeps too many rejected changes' : `${rejected.length} changes were rejected`);
    this.name = 'RejectedChangesError';
    this.rejected = rejected;
    this.isFull = isFull;
  }
}

/** Maximum milliseconds by which a change may be ahead of the clock. */
export const maxAhead = 5 * 60_000;

interface BatchRecorderOptions {
  sealer: Sealer;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Called for each rejected change, without its content. The transaction may still fail. */
  onRejected?: (kept: { tenant: string; way: Way; position: string; reason: string }) => void;
  /** For metrics: called for each recorded batch. The transaction may still fail. */
  onRecorded?: ((way: Way, counts: BatchCounts) => void) | undefined;
  /** The entity type of the people that actor ids identify, by the mapping. Default: none. */
  people?: string | undefined;
  /** Maximum rejected changes of a tenant; default: 100,000. */
  maxRejected?: number;
}

/**
 * Creates the function with which capture, the relay and the recorder record batches. The import reports rejected lines
 * instead, and stores none.
 *
 * @example
 * const record = createBatchRecorder({ sealer, now: () => Date.now() });
 * const { counts } = await inTransaction(db, (transaction) => record(transaction, batch), { retries: maxRetries });
 */
export function createBatchRecorder({
  sealer,
  now,
  onRejected,
  onRecorded,
  people,
  maxRejected,
}: BatchRecorderOptions): RecordBatch {
  return async (transaction, batch) => {
    const { tenant, recordedBy, changes, strict } = batch;
    const moment = now();
    const counts = { ...noCounts(), read: changes.length };
    const rejections: { index: number; reason: string; source: ChangeSource }[] = [];
    const reject = (index: number, reason: string, source: ChangeSource) =>
      rejections.push({ index, reason: storableText(reason), source });

    const { exists, ownTypes } = await readTenantFacts(transaction, tenant, changes);
    const accepted: { index: number; change: Change; source: ChangeSource }[] = [];
    for (const [index, incoming] of changes.entries()) {
      if (incoming.kind === 'unchanged' || incoming.kind === 'ignored') counts[incoming.kind] += 1;
      else if (incoming.kind === 'rejected') reject(index, incoming.reason, incoming.source);
      else {
        const { change, source } = incoming;
        const reason = exists ? refusalOf(change, ownTypes, moment) : 'its tenant does not exist';
        if (reason === undefined) accepted.push({ index, change, source });
        else reject(index, reason, source);
      }
    }
    const given = accepted.map(({ change }) => change);
    const recorded = people === undefined ? given : await withNamesOfPeople(transaction, tenant, given, people);
    const outcomes = await recordChanges(transaction, tenant, recorded, moment, recordedBy, sealer);
    for (const [position, { index, source }] of accepted.entries()) {
      const outcome = outcomes[position];
      if (outcome === undefined) throw new Error('a change was recorded without an outcome');
      if (outcome === 'conflict') reject(index, 'has the id and time of another change with other content', source);
      else counts[outcome] += 1;
    }

    counts.rejected = rejections.length;
    rejections.sort((a, b) => a.index - b.index);
    const rejected = rejections.map(({ index, reason }) => ({ index, reason }));
    if (rejections.length > 0) {
      if (strict) throw new RejectedChangesError(rejected, false);
      const storedTenant = exists ? tenant : unknownTenant;
      const rows = rejections.map((rejection) => rejectedRow(sealer, { ...batch, storedTenant }, rejection));
      const fits = await storeRejected(transaction, storedTenant, recordedBy, rows, maxRejected);
      if (!fits) throw new RejectedChangesError(rejected, true);
      for (const { position, reason } of rows) {
        onRejected?.({ tenant: storedTenant, way: recordedBy.way, position, reason });
      }
    }
    onRecorded?.(recordedBy.way, counts);
    return { counts, rejected };
  };
}

/** Why a valid change is rejected. */
function refusalOf({ at, entity }: Change, ownTypes: ReadonlySet<string>, moment: number): string | undefined {
  const isOwn = isOwnEntity(entity) || ownTypes.has(entity);
  if (isOwn) return '"entity" is one that this service records itself';
  return at > moment + maxAhead ? '"at" is more than 5 minutes in the future' : undefined;
}

/** Whether the tenant exists, and which entities of the changes are its custom types. */
async function readTenantFacts(
  transaction: DatabaseTransaction,
  tenant: string,
  changes: readonly IncomingChange[],
): Promise<{ exists: boolean; ownTypes: ReadonlySet<string> }> {
  const entities = new Set(changes.flatMap((incoming) => (incoming.kind === 'change' ? [incoming.change.entity] : [])));
  const candidates = [...entities].filter((entity) => /^[A-Z][A-Z0-9_]*$/.test(entity));
  const { rows } = await sql<{ exists: boolean; own: string[] }>`
    select exists (select from tenant t where t.tenant = ${tenant}) as exists,
           array(select c.id from custom_entity c
                  where c.tenant = ${tenant} and c.id = any (${candidates}::text[])) as own`.execute(transaction);
  const [row] = rows;
  return { exists: row?.exists ?? false, ownTypes: new Set(row?.own) };
}
