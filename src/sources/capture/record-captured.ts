import { randomBytes } from 'node:crypto';
import type { Connection } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { identityLength } from '../../recording/change.ts';
import { deletesOf, documentsAtOnce } from '../../recording/mapping/history-changes.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { recordMapped } from '../../recording/mapping/record-mapped.ts';
import type { MappedChange } from '../../recording/mapping/row-change.ts';
import { existingDocuments } from '../../recording/rebuild/current-documents.ts';
import { maxRetries } from '../../recording/record-change.ts';
import type { CapturedBatch } from './batcher.ts';
import type { CaptureOptions } from './capture-options.ts';
import type { HistoryComparison } from './history-comparison.ts';
import { movePosition } from './position.ts';
import type { Truncate } from './step.ts';

interface RecordingOptions extends Pick<CaptureOptions, 'db' | 'mapping' | 'recordBatch' | 'slot' | 'strict'> {
  /** Gives updates the values before them from the history; left out: they stay without. */
  readonly comparison?: HistoryComparison;
}

/** Records the changes of a batch and the position after it, in one transaction. Throws a PositionTakenError. */
export async function recordCaptured(batch: CapturedBatch, options: RecordingOptions): Promise<void> {
  if (batch.truncate !== undefined) await recordTruncate(batch, batch.truncate, options);
  else await recordChanges(batch, options);
}

/** A truncate deletes every existing document. After an interruption it resumes with the remaining ones. */
async function recordTruncate(
  { from, to }: CapturedBatch,
  { table, actor, context }: Truncate,
  options: RecordingOptions,
): Promise<void> {
  const entity = options.mapping.tables.get(table)?.entity;
  if (entity !== undefined) {
    await deleteDocuments(options, {
      entity,
      at: to.lastAt,
      actor,
      context,
      isGone: () => true,
      record: async (deletes) => {
        const changes = deletes.map(({ mapped, sides }) => ({ mapped, position: 'truncate', content: () => sides }));
        await recordChanges({ changes, from, to: from, truncate: undefined }, options);
      },
    });
  }
  await recordChanges({ changes: [], from, to, truncate: undefined }, options);
}

async function recordChanges({ from, to, changes }: CapturedBatch, options: RecordingOptions): Promise<void> {
  await inTransaction(
    options.db,
    async (transaction) => {
      // First, since it locks the row against other captures.
      await movePosition(transaction, from, to);
      const compared = (await options.comparison?.compared(transaction, changes)) ?? changes;
      await recordMapped(transaction, compared, { ...options, recordedBy: { way: 'capture', by: options.slot } });
    },
    { retries: maxRetries },
  );
  options.comparison?.committed();
}

interface Deletion {
  readonly entity: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly actor: string;
  readonly context: string | undefined;
  readonly isGone: (tenant: string, entityId: string) => boolean;
  /** Leaves out documents whose id was erased. */
  readonly withoutErased?: boolean;
  /** Records a page of deletes. `sides` is JSON text of an object with the document. */
  readonly record: (changes: readonly { mapped: MappedChange; sides: string }[]) => Promise<void>;
}

/** Deletes documents of an entity that exist in the history and are gone at the source. */
export async function deleteDocuments(
  { db, mapping, slot }: { db: Connection; mapping: Mapping; slot: string },
  { entity, at, actor, context, isGone, withoutErased = false, record }: Deletion,
): Promise<void> {
  for (const tenant of await tenantsOf(db, mapping, slot)) {
    let after: string | undefined;
    do {
      const page = { after, limit: documentsAtOnce, withoutErased };
      const { entityIds, next } = await existingDocuments(db, tenant, entity, page);
      const gone = entityIds.filter((id) => isGone(tenant, id));
      const deletion = { tenant, entity, at, actor, context, identityOf: () => randomBytes(identityLength) };
      const deletes = await deletesOf(db, mapping, deletion, gone);
      const mapped = deletes.map(({ change, sides }) => {
        return { mapped: { kind: 'change', tenant, change, hasActor: true } as const, sides };
      });
      if (mapped.length > 0) await record(mapped);
      after = next;
    } while (after !== undefined);
  }
}

/** The tenants that this capture has recorded for. A document of another tenant came in another way and is not the source's. */
async function tenantsOf(db: Connection, { tenant }: Mapping, slot: string): Promise<string[]> {
  if (tenant?.kind === 'value') return [tenant.tenant];
  const rows = await db
    .selectFrom('change_recorder')
    .select('tenant')
    .distinct()
    .where(({ and }) => and({ way: 'capture', name: slot }))
    .orderBy('tenant')
    .execute();
  return rows.map((row) => row.tenant);
}
