import { sql } from 'kysely';
import type { Sealer } from '../../core/sealing.ts';
import { storableText } from '../../core/storable-text.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { Change, Way } from '../change.ts';
import { isOwnEntity } from '../own-entities.ts';
import { recordChanges } from '../record-change.ts';
import {
  type BatchCounts,
  type ChangeSource,
  type IncomingBatch,
  noCounts,
  type RecordBatch,
  type RecordedBatch,
  RejectedChangesError,
} from './batch.ts';
import { rejectedRow, unknownTenant } from './rejected-content.ts';
import { storeRejected } from './rejected-store.ts';

/** Maximum milliseconds by which a change may be ahead of the clock. */
export const maxAhead = 5 * 60_000;

export interface BatchRecorderOptions {
  sealer: Sealer;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Called for each rejected change, without its content. The transaction may still fail. */
  onRejected?: (kept: { tenant: string; way: Way; position: string; reason: string }) => void;
  /** For metrics: called for each recorded batch. The transaction may still fail. */
  onRecorded?: ((way: Way, counts: BatchCounts) => void) | undefined;
  /** Maximum rejected changes of a tenant; default: 100,000. */
  maxRejected?: number;
}

/**
 * Creates the function with which capture, the relay and the recorder record batches. The import reports rejected lines
 * instead, and stores none.
 *
 * @example
 * const take = createTakeChanges({ sealer, now: () => Date.now() });
 * const { counts } = await inTransaction(db, (transaction) => take(transaction, batch), { retries: maxRetries });
 */
export function createBatchRecorder({
  sealer,
  now,
  onRejected,
  onRecorded,
  maxRejected,
}: BatchRecorderOptions): RecordBatch {
  return async (transaction, batch) => {
    const moment = now();
    const recording = new BatchRecording(batch);
    await recording.record(transaction, moment, sealer);
    const { rejections } = recording;
    const rejected = rejections.map(({ index, reason }) => ({ index, reason }));
    if (rejections.length === 0) {
      onRecorded?.(batch.recordedBy.way, recording.counts);
      return { counts: recording.counts, rejected };
    }
    if (batch.strict) throw new RejectedChangesError(rejected, false);
    const storedTenant = recording.isKnownTenant ? batch.tenant : unknownTenant;
    const rows = rejections.map((rejection) => rejectedRow(sealer, { ...batch, storedTenant }, rejection));
    const fits = await storeRejected(transaction, storedTenant, batch.recordedBy, rows, maxRejected);
    if (!fits) throw new RejectedChangesError(rejected, true);
    for (const { position, reason } of rows) {
      onRejected?.({ tenant: storedTenant, way: batch.recordedBy.way, position, reason });
    }
    onRecorded?.(batch.recordedBy.way, recording.counts);
    return { counts: recording.counts, rejected } satisfies RecordedBatch;
  };
}

interface Rejection {
  index: number;
  reason: string;
  source: ChangeSource;
}

class BatchRecording {
  readonly counts: BatchCounts;
  readonly rejections: Rejection[] = [];
  isKnownTenant = false;
  readonly #batch: IncomingBatch;

  constructor(batch: IncomingBatch) {
    this.#batch = batch;
    this.counts = { ...noCounts(), read: batch.changes.length };
  }

  async record(transaction: DatabaseTransaction, moment: number, sealer: Sealer): Promise<void> {
    const { tenant, recordedBy, changes } = this.#batch;
    const entities = changes.flatMap((incoming) => (incoming.kind === 'change' ? [incoming.change.entity] : []));
    const { exists, ownTypes } = await readTenantFacts(
      transaction,
      tenant,
      [...new Set(entities)].filter(mayBeOwnType),
    );
    this.isKnownTenant = exists;
    const accepted: { index: number; change: Change; source: ChangeSource }[] = [];
    for (const [index, incoming] of changes.entries()) {
      if (incoming.kind === 'unchanged' || incoming.kind === 'ignored') this.counts[incoming.kind] += 1;
      else if (incoming.kind === 'rejected') this.#reject(index, incoming.reason, incoming.source);
      else {
        const { change, source } = incoming;
        const reason = exists ? refusalOf(change, ownTypes, moment) : 'its tenant does not exist';
        if (reason === undefined) accepted.push({ index, change, source });
        else this.#reject(index, reason, source);
      }
    }
    const recorded = accepted.map(({ change }) => change);
    const outcomes = await recordChanges(transaction, tenant, recorded, moment, recordedBy, sealer);
    for (const [position, { index, source }] of accepted.entries()) {
      const outcome = outcomes[position];
      if (outcome === undefined) throw new Error('a change was recorded without an outcome');
      if (outcome === 'conflict')
        this.#reject(index, 'has the id and time of another change with other content', source);
      else this.counts[outcome] += 1;
    }
    this.rejections.sort((rejection, b) => rejection.index - b.index);
  }

  #reject(index: number, reason: string, source: ChangeSource): void {
    this.counts.rejected += 1;
    this.rejections.push({ index, reason: storableText(reason), source });
  }
}

/** Why a valid change is rejected. */
function refusalOf({ at, entity }: Change, ownTypes: ReadonlySet<string>, moment: number): string | undefined {
  const isOwn = isOwnEntity(entity) || ownTypes.has(entity);
  if (isOwn) return '"entity" is one that this service records itself';
  return at > moment + maxAhead ? '"at" is more than 5 minutes in the future' : undefined;
}

function mayBeOwnType(entity: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(entity);
}

/** Whether the tenant exists, and which of these entity types are its custom types. */
async function readTenantFacts(
  transaction: DatabaseTransaction,
  tenant: string,
  entities: readonly string[],
): Promise<{ exists: boolean; ownTypes: ReadonlySet<string> }> {
  const { rows } = await sql<{ exists: boolean; own: string[] }>`
    select exists (select from tenant t where t.tenant = ${tenant}) as exists,
           array(select c.id from custom_entity c where c.tenant = ${tenant} and c.id = any (${entities}::text[])) as own`.execute(
    transaction,
  );
  const [row] = rows;
  return { exists: row?.exists ?? false, ownTypes: new Set(row?.own) };
}
