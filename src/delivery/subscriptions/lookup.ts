import { AnnalsError, invalidBody } from '../../core/errors.ts';
import type { Connection } from '../../postgres/database.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { HistoryToDeliver, ReadingPosition } from '../changes.ts';
import type { Target } from '../targets/target.ts';
import type { SubscriptionDocument } from './schemas.ts';
import { subscriptionTable } from './store.ts';

export const subscriptionNoun = 'subscription';

/** Reads a subscription. Throws resource_not_found. */
export async function requireSubscription(
  connection: Connection,
  tenant: string,
  id: string,
): Promise<{ sealed: Uint8Array | null; document: SubscriptionDocument }> {
  const stored = await subscriptionTable.find(connection, tenant, id);
  if (stored === undefined) throw notFound(subscriptionNoun);
  return { sealed: stored.sealed, document: JSON.parse(stored.document) as SubscriptionDocument };
}

/** The target with this `type`. */
export function targetOf(targets: readonly Target[], { type }: { readonly type: string }): Target {
  const target = targets.find((candidate) => candidate.type === type);
  if (target === undefined) throw new Error(`there is no target ${type}`);
  return target;
}

/** The position of a cursor that a client sent in this field. Throws validation_violation. */
export async function positionOfCursor(
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
