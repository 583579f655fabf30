import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type GivenChange, RejectedChangesError, type TakeChanges } from '../batches/batch.ts';
import type { RecordedBy } from '../change.ts';
import { lineOfChange } from './line-of-change.ts';
import type { MappedChange } from './row-change.ts';

/** What became of a row, with what is kept of it where it can never be recorded. */
export interface PlacedChange {
  readonly mapped: MappedChange;
  /** The place in the source, for people. */
  readonly place: string;
  /** JSON text of an object with the row's `before` and `after`, masked. Called only for a change that is rejected. */
  content(): string;
}

export interface RecordMappedOptions {
  readonly takeChanges: TakeChanges;
  readonly recordedBy: RecordedBy;
  readonly strict: boolean;
}

/** Changes can never be recorded, and the operator wants to stop at them, or a tenant keeps too many. */
export class RefusedChangesError extends Error {
  override name = 'RefusedChangesError';
}

/** Records changes of any tenants in the transaction. The order within a tenant is kept. Throws a RefusedChangesError. */
export async function recordMapped(
  transaction: DatabaseTransaction,
  changes: readonly PlacedChange[],
  { takeChanges, recordedBy, strict }: RecordMappedOptions,
): Promise<void> {
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
      const place = (first && of[first.index]?.place) ?? 'the source';
      throw new RefusedChangesError(`${error.message}; the first is at ${place}: ${first?.reason ?? ''}`, {
        cause: error,
      });
    }
  }
}

function given({ mapped, place, content }: PlacedChange): GivenChange {
  if (mapped.kind === 'unchanged') return mapped;
  if (mapped.kind === 'rejected') {
    return { kind: 'rejected', reason: mapped.reason, source: { position: place, line: () => mapped.content } };
  }
  const { change } = mapped;
  const source = { position: place, line: () => lineOfChange(change, content()), identity: change.identity };
  return { kind: 'change', change, source };
}
