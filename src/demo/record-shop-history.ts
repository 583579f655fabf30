import { type Change, type ChangeType, changeOfDocuments, type RecordBatch } from '../recording/change.ts';
import { identityOfId } from '../recording/identity.ts';
import type { DemoChange } from './demo-change.ts';
import { generateShopHistory } from './generate-shop-history.ts';

const typeOfOp: Record<DemoChange['op'], ChangeType> = {
  insert: 'create',
  update: 'update',
  replace: 'update',
  delete: 'delete',
};

/**
 * Records the shop's history up to `now` (milliseconds since 1970) and answers how many changes were not there yet.
 * All in one batch, so that a tenant has the whole shop or nothing; again on the same UTC day, nothing twice.
 */
export async function recordShopHistory(record: RecordBatch, options: { seed: number; now: number }): Promise<number> {
  const changes: Change[] = [];
  for (const demoChange of generateShopHistory(options)) {
    // The position of a change identifies it among all changes of the same seed.
    const identity = identityOfId(`demo ${options.seed} ${changes.length}`);
    const { op, before, after, ...rest } = demoChange;
    const change = changeOfDocuments({
      ...rest,
      type: typeOfOp[op],
      before: before === undefined ? undefined : JSON.stringify(before),
      after: after === undefined ? undefined : JSON.stringify(after),
    });
    if (change !== 'unchanged') changes.push({ ...change, identity });
  }
  const outcomes = await record(changes);
  return outcomes.filter((outcome) => outcome === 'recorded').length;
}
