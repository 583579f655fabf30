import { type Change, type ChangeType, changeOfDocuments, type RecordBatch } from '../recording/change.ts';
import { identityOfId } from '../recording/identity.ts';
import type { DemoChange } from './shop-file.ts';

const typeOfOp: Record<DemoChange['op'], ChangeType> = {
  insert: 'create',
  update: 'update',
  replace: 'update',
  delete: 'delete',
};

/**
 * Records the shop's history and answers how many changes were not there yet. All in one batch, so that a tenant has
 * the whole shop or nothing; again within the same week, nothing twice.
 */
export async function recordShopHistory(record: RecordBatch, history: readonly DemoChange[]): Promise<number> {
  const changes: Change[] = [];
  for (const [position, { op, before, after, ...rest }] of history.entries()) {
    const change = changeOfDocuments({
      ...rest,
      type: typeOfOp[op],
      before: before === undefined ? undefined : JSON.stringify(before),
      after: after === undefined ? undefined : JSON.stringify(after),
    });
    if (change !== 'unchanged') changes.push({ ...change, identity: identityOfId(`demo ${position}`) });
  }
  const outcomes = await record(changes);
  return outcomes.filter((outcome) => outcome === 'recorded').length;
}
