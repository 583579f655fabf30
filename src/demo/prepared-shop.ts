import { threaded } from '../core/fairness/threads.ts';
import { type Change, type ChangeType, changeOfDocuments } from '../recording/change.ts';
import { identityOfId } from '../recording/identity.ts';
import { type InventedShop, inventShop } from './invented-shop.ts';
import type { DemoChange } from './shop-file.ts';

const typeOfOp: Record<DemoChange['op'], ChangeType> = {
  insert: 'create',
  update: 'update',
  replace: 'update',
  delete: 'delete',
};

/** The shop's history as the history records it. Within the same week, a change has the same identity again. */
export function changesOfShop(history: readonly DemoChange[]): Change[] {
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
  return changes;
}

export interface PreparedShop extends Omit<InventedShop, 'changes'> {
  readonly changes: readonly Change[];
}

/** Invents the shop of now (milliseconds since 1970) in a worker thread, ready to record. */
export const preparedShop = threaded(
  import.meta.url,
  'preparedShop',
  (now: number): PreparedShop => {
    const { changes, ...documents } = inventShop(now);
    return { ...documents, changes: changesOfShop(changes) };
  },
  () => true,
);
