import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Connection } from '../../postgres/database.ts';
import type { HistoryToDeliver, ReadingPosition } from '../changes.ts';
import type { Target } from '../targets/target.ts';
import { mayBeId, type SubscriptionDocument } from './schemas.ts';
import { findSubscription, type StoredSubscription } from './store.ts';

/** A subscription that is there. Throws resource_not_found. */
export async function foundSubscription(
  connection: Connection,
  tenant: string,
  id: string,
): Promise<{ stored: StoredSubscription; document: SubscriptionDocument }> {
  const stored = mayBeId(id) ? await findSubscription(connection, tenant, id) : undefined;
  if (stored === undefined) throw subscriptionNotFound();
  return { stored, document: JSON.parse(stored.document) as SubscriptionDocument };
}

export function subscriptionNotFound(): AnnalsError {
  return new AnnalsError('resource_not_found', 'There is no such subscription.');
}

/** The kind of target that has this `type`. */
export function targetOf(targets: readonly Target[], { type }: { readonly type: string }): Target {
  const target = targets.find((one) => one.type === type);
  if (target === undefined) throw new Error(`there is no target ${type}`);
  return target;
}

/** Where a cursor that a client has sent in this field points to. Throws validation_violation. */
export async function placeOf(
  history: HistoryToDeliver,
  tenant: string,
  field: string,
  text: string,
): Promise<ReadingPosition> {
  try {
    return await history.positionOf(tenant, text);
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.type !== 'validation_violation') throw error;
    throw invalidBody({ field, message: 'is not a cursor of the feed of this tenant' });
  }
}
