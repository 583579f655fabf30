import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type IncomingChange, type RecordBatch, RejectedChangesError } from '../batches/record-batch.ts';
import type { RecordedBy } from '../change.ts';
import { derivedOf, lineOfChange } from './import-line.ts';
import type { MappedChange } from './row-change.ts';

/** A mapped change with its source, to store if it is rejected. */
export interface SourceChange {
  readonly mapped: MappedChange;
  /** The position in the source, for people. */
  readonly position: string;
  /** JSON text of an object with the masked `before` and `after`. Called only if the change is rejected. */
  content(): string;
}

interface RecordMappedOptions {
  readonly recordBatch: RecordBatch;
  readonly recordedBy: RecordedBy;
  readonly strict: boolean;
}

/** Rejected changes, with `--strict` or at the tenant's limit. */
export class RefusedChangesError extends Error {
  override name = 'RefusedChangesError';
}

/** Records changes of any tenants in the transaction, in order per tenant. Throws a RefusedChangesError. */
export async function recordMapped(
  transaction: DatabaseTransaction,
  changes: readonly SourceChange[],
  { recordBatch, recordedBy, strict }: RecordMappedOptions,
): Promise<void> {
  // Every transaction uses the same tenant order, to avoid deadlocks.
  const byTenant = [...Map.groupBy(changes, ({ mapped }) => mapped.tenant ?? '')].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [tenant, tenantChanges] of byTenant) {
    try {
      await recordBatch(transaction, { tenant, recordedBy, changes: tenantChanges.map(incomingChange), strict });
    } catch (error) {
      if (!(error instanceof RejectedChangesError)) throw error;
      const [first] = error.rejected;
      const position = (first && tenantChanges[first.index]?.position) ?? 'the source';
      throw new RefusedChangesError(`${error.message}; the first is at ${position}: ${first?.reason ?? ''}`, {
        cause: error,
      });
    }
  }
}

function incomingChange({ mapped, position, content }: SourceChange): IncomingChange {
  if (mapped.kind === 'unchanged') return mapped;
  if (mapped.kind === 'rejected') {
    return { kind: 'rejected', reason: mapped.reason, source: { position, line: () => mapped.content } };
  }
  const { change } = mapped;
  const source = { position, line: () => lineOfChange(change, content()), ...derivedOf(change) };
  return { kind: 'change', change, source };
}
