import type { Database, DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import { type GivenChange, RejectedChangesError, type TakeChanges } from '../recording/batch.ts';
import type { Mapping } from '../recording/mapping/mapping.ts';
import { deleteDocuments } from './delete-documents.ts';
import { lineOfChange } from './line-of-change.ts';
import type { Portion, PortionChange } from './portions.ts';
import { movePosition } from './position.ts';
import { CaptureError } from './source.ts';
import type { Truncate } from './step.ts';

export interface RecordPortionOptions {
  readonly db: Database;
  readonly mapping: Mapping;
  readonly takeChanges: TakeChanges;
  /** The name of the slot, which entries show as the capture that recorded them. */
  readonly slot: string;
  readonly strict: boolean;
}

// Another recorder of the same changes may win the race for a row.
const maxRetries = 20;

/** Records the changes of a portion and the position after it, in one transaction. Throws a PositionTakenError. */
export async function recordPortion(portion: Portion, options: RecordPortionOptions): Promise<void> {
  if (portion.truncate !== undefined) await recordTruncate(portion, portion.truncate, options);
  else await recordChanges(portion, options);
}

/** A truncate deletes every document that exists. Broken off, it goes on with those that still do. */
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
        const changes = deletes.map(({ mapped, sides }) => ({ mapped, place: 'truncate', content: () => sides }));
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
      // First, because it locks the row: no other capture records meanwhile.
      await movePosition(transaction, from, to);
      await recordByTenant(transaction, changes, options);
    },
    { retries: maxRetries },
  );
}

/** Records changes of any tenants. The order within a tenant is kept. */
export async function recordByTenant(
  transaction: DatabaseTransaction,
  changes: readonly PortionChange[],
  { takeChanges, slot, strict }: Omit<RecordPortionOptions, 'db' | 'mapping'>,
): Promise<void> {
  const recordedBy = { way: 'capture', by: slot } as const;
  // In one order of tenants for every transaction: two that wait for each other would be a deadlock.
  const byTenant = [...Map.groupBy(changes, ({ mapped }) => mapped.tenant ?? '')].sort(([one], [other]) =>
    one < other ? -1 : 1,
  );
  for (const [tenant, of] of byTenant) {
    try {
      await takeChanges(transaction, { tenant, recordedBy, changes: of.map(given), strict });
    } catch (error) {
      if (!(error instanceof RejectedChangesError)) throw error;
      const [first] = error.rejected;
      const place = first === undefined ? 'the source' : (of[first.index]?.place ?? 'the source');
      throw new CaptureError(`${error.message}; the first is at ${place}: ${first?.reason ?? ''}`, { cause: error });
    }
  }
}

function given({ mapped, place, content }: PortionChange): GivenChange {
  if (mapped.kind === 'unchanged') return mapped;
  if (mapped.kind === 'rejected') {
    return { kind: 'rejected', reason: mapped.reason, source: { position: place, line: () => mapped.content } };
  }
  const { change } = mapped;
  const source = { position: place, line: () => lineOfChange(change, content()), identity: change.identity };
  return { kind: 'change', change, source };
}
