import type { DatabaseTransaction } from '../../postgres/database.ts';
import { type Author, recordDocumentChange } from '../../recording/record-document-change.ts';
import { type ConfigurationItem, viewOf } from './item.ts';

export interface ItemChange {
  readonly before?: ConfigurationItem;
  readonly after?: ConfigurationItem;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Records what became of an item, in the transaction that changes it. */
export async function recordItemChange(
  transaction: DatabaseTransaction,
  author: Author,
  { before, after, at }: ItemChange,
): Promise<void> {
  // A value that was in the clear and becomes a secret is masked too: it may be the same string.
  const maskValue = after?.value.secured === true;
  const isReplaced = maskValue && before !== undefined && before.value !== after.value;
  await recordDocumentChange(transaction, author, {
    entity: 'configuration',
    entityId: (after ?? before)?.key ?? '',
    at,
    before: before && viewOf(before, { maskValue }),
    after: after && viewOf(after),
    replacedSecret: isReplaced ? 'value' : undefined,
  });
}
