import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import {
  addCounts,
  type BatchCounts,
  type IncomingBatch,
  type IncomingChange,
  noCounts,
  type RecordBatch,
  type RecordedBatch,
  type RejectedChange,
  RejectedChangesError,
} from '../../recording/batches/record-batch.ts';
import type { ChangeSource } from '../../recording/batches/rejected-changes.ts';
import { identityOf } from '../../recording/identity.ts';
import { changeOfSnapshot, deletesOf, documentsAtOnce } from '../../recording/mapping/history-changes.ts';
import { derivedOf, lineOfChange } from '../../recording/mapping/import-line.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { currentDocuments, existingDocuments } from '../../recording/rebuild/current-documents.ts';
import type { ReadChange } from './read-change.ts';

type Snapshot = Omit<Extract<ReadChange, { kind: 'snapshot' }>, 'stored'> & { source: ChangeSource };
type Truncate = Extract<ReadChange, { kind: 'truncate' }> & { correlationId?: string | undefined };

/** A change of a body, with the index of its value. */
export type Recordable = { index: number } & (IncomingChange | Snapshot | Truncate);

/** Runs the work in its own transaction, with retries of serialization failures. */
export type InOwnTransaction = <Result>(work: (transaction: DatabaseTransaction) => Promise<Result>) => Promise<Result>;

interface Batch extends Omit<IncomingBatch, 'changes'> {
  changes: readonly Recordable[];
  actor: string;
  mapping: Mapping | undefined;
}

/**
 * Records the changes of a body in order and in one transaction. Only a truncate of a batch that is not strict deletes
 * each page in its own, so that it resumes after a timeout. Throws `RejectedChangesError`. Indexes are the body's.
 */
export async function recordRead(
  inOwnTransaction: InOwnTransaction,
  recordBatch: RecordBatch,
  batch: Batch,
): Promise<RecordedBatch> {
  if (batch.strict) return await inOwnTransaction((transaction) => recordWhole(transaction, recordBatch, batch));
  const total = new Total();
  for (const changes of divided(batch.changes, ({ kind }) => (kind === 'truncate' ? kind : ''))) {
    const [first] = changes;
    if (first?.kind !== 'truncate') {
      total.add(await inOwnTransaction((transaction) => recordWhole(transaction, recordBatch, { ...batch, changes })));
      continue;
    }
    await deleteAll(inOwnTransaction, recordBatch, batch, first, total);
  }
  return total;
}

/** Deletes the documents page by page. If there are none, the truncate itself is counted. */
async function deleteAll(
  inOwnTransaction: InOwnTransaction,
  recordBatch: RecordBatch,
  batch: Batch,
  truncate: Truncate & { index: number },
  total: Total,
): Promise<void> {
  const before = total.counts.read;
  let after: string | undefined;
  do {
    const page = await inOwnTransaction((transaction) => deletePage(transaction, recordBatch, batch, truncate, after));
    total.add(page);
    after = page.next;
  } while (after !== undefined);
  if (total.counts.read === before) addCounts(total.counts, { read: 1, ignored: 1 });
}

async function recordWhole(
  transaction: DatabaseTransaction,
  recordBatch: RecordBatch,
  batch: Batch,
): Promise<RecordedBatch> {
  const total = new Total();
  for (const part of divided(batch.changes, ({ kind }) => (kind === 'truncate' || kind === 'snapshot' ? kind : ''))) {
    const [first] = part;
    if (first?.kind === 'truncate') {
      await deleteAll((work) => work(transaction), recordBatch, batch, first, total);
      continue;
    }
    const isCompared = first !== undefined && isSnapshot(first);
    const incoming = isCompared ? await compared(transaction, batch, part.filter(isSnapshot)) : part.filter(isIncoming);
    try {
      total.add(await recordPart(transaction, recordBatch, batch, incoming));
    } catch (error) {
      if (!(error instanceof RejectedChangesError)) throw error;
      throw new RejectedChangesError([...total.rejected, ...error.rejected], error.isFull);
    }
  }
  return total;
}

/** Records changes. The indexes of rejected ones are those of the body. */
async function recordPart(
  transaction: DatabaseTransaction,
  recordBatch: RecordBatch,
  { changes: _changes, actor: _actor, mapping: _mapping, ...batch }: Batch,
  incoming: readonly (IncomingChange & { index: number })[],
): Promise<RecordedBatch> {
  const inBody = (list: readonly RejectedChange[]) =>
    list.map(({ index, reason }) => ({ index: incoming[index]?.index ?? index, reason }));
  try {
    const { counts, rejected } = await recordBatch(transaction, { ...batch, changes: incoming });
    return { counts, rejected: inBody(rejected) };
  } catch (error) {
    if (!(error instanceof RejectedChangesError)) throw error;
    throw new RejectedChangesError(inBody(error.rejected), error.isFull);
  }
}

class Total implements RecordedBatch {
  readonly counts: BatchCounts = noCounts();
  readonly rejected: RejectedChange[] = [];

  add({ counts, rejected }: RecordedBatch): void {
    addCounts(this.counts, counts);
    this.rejected.push(...rejected);
  }
}

/** Consecutive changes of one group. A truncate is alone. */
function divided(changes: readonly Recordable[], groupOf: (change: Recordable) => string): Recordable[][] {
  const parts: Recordable[][] = [];
  for (const change of changes) {
    const last = parts.at(-1);
    const isLike = last?.[0] !== undefined && groupOf(last[0]) === groupOf(change);
    if (isLike && change.kind !== 'truncate') last.push(change);
    else parts.push([change]);
  }
  return parts;
}

function isSnapshot(change: Recordable): change is Snapshot & { index: number } {
  return change.kind === 'snapshot';
}

function isIncoming(change: Recordable): change is IncomingChange & { index: number } {
  return change.kind !== 'snapshot' && change.kind !== 'truncate';
}

/** Rows of a snapshot as creates, updates or no changes, compared with the history. */
async function compared(
  transaction: DatabaseTransaction,
  { tenant, mapping }: Batch,
  snapshots: readonly (Snapshot & { index: number })[],
): Promise<(IncomingChange & { index: number })[]> {
  const incoming: (IncomingChange & { index: number })[] = [];
  const slice = new TimeSlice();
  for (const [entity, group] of Map.groupBy(snapshots, ({ document }) => document.change.entity)) {
    const ids = group.map(({ document }) => document.change.entityId);
    const stored = await currentDocuments(transaction, tenant, entity, ids);
    for (const [position, { index, document, source }] of group.entries()) {
      if (slice.isDue) await slice.rest();
      const change = changeOfSnapshot(document, stored[position], mapping);
      if (change === undefined) incoming.push({ index, kind: 'unchanged' });
      else incoming.push({ index, kind: 'change', change, source });
    }
  }
  return incoming.sort((a, b) => a.index - b.index);
}

/**
 * Deletes a page of the documents of an entity that existed at the truncate's time. The identity of each delete derives
 * from the event's, so it is idempotent on retry and spares documents created since.
 */
async function deletePage(
  transaction: DatabaseTransaction,
  recordBatch: RecordBatch,
  batch: Batch,
  { index, entity, at, identity, correlationId }: Truncate & { index: number },
  after: string | undefined,
): Promise<RecordedBatch & { next: string | undefined }> {
  const { tenant, actor, mapping } = batch;
  const page = { after, until: at, limit: documentsAtOnce };
  const { entityIds, next } = await existingDocuments(transaction, tenant, entity, page);
  const origin = `annals:truncate:${Buffer.from(identity).toString('hex')}`;
  const deletion = {
    tenant,
    at,
    entity,
    who: { actor },
    ...(correlationId !== undefined && { correlationId, derived: { correlationId: true } as const }),
    identityOf: (id: string) => identityOf(`${origin}:${id}`),
  };
  const deletes = await deletesOf(transaction, mapping, deletion, entityIds);
  const incoming = deletes.map(({ change, sides }) => {
    const line = () => lineOfChange(change, sides);
    const source: ChangeSource = { position: `a document of ${entity}`, line, ...derivedOf(change) };
    return { index, kind: 'change', change, source } as const;
  });
  return { ...(await recordPart(transaction, recordBatch, batch, incoming)), next };
}
