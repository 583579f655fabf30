import type { DatabaseTransaction } from '../db/database.ts';
import { type Change, changeOfDocuments } from '../recording/change.ts';
import { recordChange } from '../recording/record-change.ts';
import { type ConfigurationItem, mask, viewOf } from './item.ts';

/** Who changes something, and when (milliseconds since 1970). */
export interface Author {
  actor: string;
  at: number;
}

/** Records what became of an item in the transaction that changes it; without `before` it was made. */
export async function recordItemChange(
  transaction: DatabaseTransaction,
  tenant: string,
  { before, after }: { before?: ConfigurationItem; after?: ConfigurationItem },
  { actor, at }: Author,
): Promise<void> {
  const item = after ?? before;
  if (item === undefined) return;
  // What was in the clear so far and becomes a secret is masked too: it may be the same string.
  const maskValue = after?.value.secured === true;
  const change = changeOfDocuments({
    type: before === undefined ? 'create' : after === undefined ? 'delete' : 'update',
    entity: 'configuration',
    entityId: item.key,
    at,
    actor,
    before: before && viewOf(before, { maskValue }),
    after: after && viewOf(after),
  });
  if (change === 'unchanged') return;
  const replacedSecret = maskValue && before !== undefined && before.value !== after?.value;
  await recordChange(transaction, tenant, replacedSecret ? withMaskedValue(change) : change, at);
}

/** Both masks are equal, so that a comparison does not see what did change (contract: how changes are recorded). */
function withMaskedValue(change: Change): Change {
  const masked = `"value":${JSON.stringify({ before: mask, after: mask })}`;
  const rest = change.paths.slice(1);
  return { ...change, paths: `{${masked}${rest === '}' ? '' : ','}${rest}` };
}
