import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Connection } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { identityLength } from '../../recording/change.ts';
import { deletesOf, documentsAtOnce } from '../../recording/mapping/history-changes.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { recordMapped, type SourceChange } from '../../recording/mapping/record-mapped.ts';
import { existingDocuments } from '../../recording/rebuild/current-documents.ts';
import { maxRetries } from '../../recording/record-change.ts';
import type { CapturedBatch } from './batcher.ts';
import type { CaptureOptions } from './capture-options.ts';
import type { HistoryComparison } from './history-comparison.ts';
import { movePosition } from './position.ts';
import type { Truncate } from './step.ts';

interface RecordingOptions extends Pick<CaptureOptions, 'db' | 'mapping' | 'recordBatch' | 'slot' | 'strict'> {
  /** Completes updates with their previous values from the history. */
  readonly comparison?: HistoryComparison;
}

/** Records a batch and the position after it, in one transaction. Throws a PositionTakenError. */
export async function recordCaptured(
  { from, to, changes, truncate }: CapturedBatch,
  options: RecordingOptions,
): Promise<void> {
  const entity = truncate && options.mapping.tables.get(truncate.table)?.entity;
  if (truncate !== undefined && entity !== undefined) {
    // Interrupted, it resumes with the remaining documents.
    await deleteDocuments(options, {
      entity,
      at: to.lastAt,
      ...truncate,
      position: 'truncate',
      isGone: () => true,
      record: (deletes) => recordChanges({ changes: deletes, from, to: from }, options),
    });
  }
  await recordChanges({ changes, from, to }, options);
}

async function recordChanges(
  { from, to, changes }: Omit<CapturedBatch, 'truncate'>,
  options: RecordingOptions,
): Promise<void> {
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

interface Deletion extends Omit<Truncate, 'table'> {
  readonly entity: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The position of each delete. */
  readonly position: string;
  readonly isGone: (tenant: string, entityId: string) => boolean;
  /** Excludes documents whose id was erased. */
  readonly withoutErased?: boolean;
  /** Records a page of deletes. */
  readonly record: (changes: readonly SourceChange[]) => Promise<void>;
}

/** Deletes documents of an entity that exist in the history and are gone at the source. */
export async function deleteDocuments(
  { db, mapping, slot }: { db: Connection; mapping: Mapping; slot: string },
  { entity, at, position, isGone, withoutErased = false, record, ...said }: Deletion,
): Promise<void> {
  for (const tenant of await tenantsOf(db, mapping, slot)) {
    let after: string | undefined;
    do {
      const page = { after, limit: documentsAtOnce, withoutErased };
      const { entityIds, next } = await existingDocuments(db, tenant, entity, page);
      const gone = entityIds.filter((id) => isGone(tenant, id));
      const deletion = { tenant, entity, at, ...said, identityOf: () => randomBytes(identityLength) };
      const deletes = (await deletesOf(db, mapping, deletion, gone)).map(
        ({ change, sides }): SourceChange => ({
          mapped: { kind: 'change', tenant, change, hasActor: true },
          position,
          content: () => sides,
        }),
      );
      if (deletes.length > 0) await record(deletes);
      after = next;
    } while (after !== undefined);
  }
}

/** The tenants that this capture has recorded for. Documents of other tenants are from other sources. */
async function tenantsOf(db: Connection, { tenant }: Mapping, slot: string): Promise<string[]> {
  if (tenant?.kind === 'value') return [tenant.tenant];
  const { rows } = await sql<{ tenant: string }>`
    select distinct tenant from change_recorder where way = 'capture' and name = ${slot} order by tenant`.execute(db);
  return rows.map((row) => row.tenant);
}
