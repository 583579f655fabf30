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
  type GivenBatch,
  noCounts,
  RejectedChangesError,
  type TakeChanges,
  type TakenBatch,
} from './batch.ts';
import { rejectedRow, unknownTenant } from './kept-change.ts';
import { storeRejected } from './rejected-store.ts';

/** The maximum time by which a change may be ahead of the clock, in milliseconds. */
export const maxAhead = 5 * 60_000;

export interface TakeChangesOptions {
  sealer: Sealer;
  /** Milliseconds since 1970. */
  now: () => number;
  /** Called for each change that is kept, without its content. The transaction may still fail. */
  onKept?: (kept: { tenant: string; way: Way; position: string; reason: string }) => void;
  /** For metrics: called for each batch that was taken. The transaction may still fail. */
  onTaken?: ((way: Way, counts: BatchCounts) => void) | undefined;
  /** How many rejected changes a tenant keeps; default: 100,000. */
  maxRejected?: number;
}

/**
 * Makes the function that capture, the relay and the recorder call with their batches. The import does not use it: it
 * reports rejected lines and keeps none.
 *
 * @example
 * const take = createTakeChanges({ sealer, now: () => Date.now() });
 * const { counts } = await inTransaction(db, (transaction) => take(transaction, batch), { retries: maxRetries });
 */
export function createTakeChanges({ sealer, now, onKept, onTaken, maxRejected }: TakeChangesOptions): TakeChanges {
  return async (transaction, batch) => {
    const moment = now();
    const taking = new Taking(batch);
    await taking.record(transaction, moment, sealer);
    const { rejections } = taking;
    const rejected = rejections.map(({ index, reason }) => ({ index, reason }));
    if (rejections.length === 0) {
      onTaken?.(batch.recordedBy.way, taking.counts);
      return { counts: taking.counts, rejected };
    }
    if (batch.strict) throw new RejectedChangesError(rejected, false);
    const storedTenant = taking.isKnownTenant ? batch.tenant : unknownTenant;
    const rows = rejections.map((one) => rejectedRow(sealer, { ...batch, storedTenant }, one));
    const fits = await storeRejected(transaction, storedTenant, batch.recordedBy, rows, maxRejected);
    if (!fits) throw new RejectedChangesError(rejected, true);
    for (const { position, reason } of rows) {
      onKept?.({ tenant: storedTenant, way: batch.recordedBy.way, position, reason });
    }
    onTaken?.(batch.recordedBy.way, taking.counts);
    return { counts: taking.counts, rejected } satisfies TakenBatch;
  };
}

interface Rejection {
  index: number;
  reason: string;
  source: ChangeSource;
}

class Taking {
  readonly counts: BatchCounts;
  readonly rejections: Rejection[] = [];
  isKnownTenant = false;
  readonly #batch: GivenBatch;

  constructor(batch: GivenBatch) {
    this.#batch = batch;
    this.counts = { ...noCounts(), read: batch.changes.length };
  }

  async record(transaction: DatabaseTransaction, moment: number, sealer: Sealer): Promise<void> {
    const { tenant, recordedBy, changes } = this.#batch;
    const entities = changes.flatMap((given) => (given.kind === 'change' ? [given.change.entity] : []));
    const { exists, ownTypes } = await readTenantFacts(
      transaction,
      tenant,
      [...new Set(entities)].filter(mayBeOwnType),
    );
    this.isKnownTenant = exists;
    const wanted: { index: number; change: Change; source: ChangeSource }[] = [];
    for (const [index, given] of changes.entries()) {
      if (given.kind === 'unchanged' || given.kind === 'ignored') this.counts[given.kind] += 1;
      else if (given.kind === 'rejected') this.#reject(index, given.reason, given.source);
      else {
        const { change, source } = given;
        const reason = exists ? refusalOf(change, ownTypes, moment) : 'its tenant does not exist';
        if (reason === undefined) wanted.push({ index, change, source });
        else this.#reject(index, reason, source);
      }
    }
    const recorded = wanted.map(({ change }) => change);
    const outcomes = await recordChanges(transaction, tenant, recorded, moment, recordedBy, sealer);
    for (const [place, { index, source }] of wanted.entries()) {
      const outcome = outcomes[place];
      if (outcome === undefined) throw new Error('a change was recorded without an outcome');
      if (outcome === 'conflict')
        this.#reject(index, 'has the id and time of another change with other content', source);
      else this.counts[outcome] += 1;
    }
    this.rejections.sort((one, other) => one.index - other.index);
  }

  #reject(index: number, reason: string, source: ChangeSource): void {
    this.counts.rejected += 1;
    this.rejections.push({ index, reason: storableText(reason), source });
  }
}

/** Why a change that could be read is not recorded. */
function refusalOf({ at, entity }: Change, ownTypes: ReadonlySet<string>, moment: number): string | undefined {
  const isOwn = isOwnEntity(entity) || ownTypes.has(entity);
  if (isOwn) return '"entity" is one that this service records itself';
  return at > moment + maxAhead ? '"at" is more than 5 minutes in the future' : undefined;
}

function mayBeOwnType(entity: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(entity);
}

/** Whether the tenant is there, and which of these entity types are its own. */
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
