import { inTransaction } from '../../postgres/transaction.ts';
import { recordMapped } from '../../recording/mapping/record-mapped.ts';
import { maxRetries } from '../../recording/record-change.ts';
import type { CaptureOptions } from './capture-options.ts';
import { deleteDocuments } from './delete-documents.ts';
import type { HistoryComparison } from './history-comparison.ts';
import type { Portion } from './portions.ts';
import { movePosition } from './position.ts';
import type { Truncate } from './step.ts';

interface RecordPortionOptions extends Pick<CaptureOptions, 'db' | 'mapping' | 'recordBatch' | 'slot' | 'strict'> {
  /** Gives updates the values before them from the history; left out: they stay without. */
  readonly comparison?: HistoryComparison;
}

/** Records the changes of a portion and the position after it, in one transaction. Throws a PositionTakenError. */
export async function recordPortion(portion: Portion, options: RecordPortionOptions): Promise<void> {
  if (portion.truncate !== undefined) await recordTruncate(portion, portion.truncate, options);
  else await recordChanges(portion, options);
}

/** A truncate deletes every existing document. After an interruption it resumes with the remaining ones. */
async function recordTruncate(
  { from, to }: Portion,
  { table, actor, context }: Truncate,
  options: RecordPortionOptions,
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

async function recordChanges({ from, to, changes }: Portion, options: RecordPortionOptions): Promise<void> {
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
