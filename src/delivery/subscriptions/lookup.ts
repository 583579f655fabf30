import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Connection } from '../../postgres/database.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { HistoryToDeliver, ReadingPosition } from '../changes.ts';
import type { Target } from '../targets/target.ts';
import type { SubscriptionDocument } from './schemas.ts';
import { subscriptionTable } from './store.ts';

export const subscriptionNoun = 'subscription';

/** A subscription that is there. Throws resource_not_found. */
export async function foundSubscription(
  connection: Connection,
  tenant: string,
  id: string,
): Promise<{ sealed: Uint8Array | null; document: SubscriptionDocument }> {
  const stored = await subscriptionTable.find(connection, tenant, id);
  if (stored === undefined) throw notFound(subscriptionNoun);
  return { sealed: stored.sealed, document: JSON.parse(stored.document) as SubscriptionDocument };
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
  fault = 'is not a cursor of the feed of this tenant',
): Promise<ReadingPosition> {
  try {
    return await history.positionOf(tenant, text);
  } catch (error) {
    if (!(error instanceof AnnalsError) || error.type !== 'validation_violation') throw error;
    throw invalidBody({ field, message: fault });
  }
}
