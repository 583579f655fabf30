import { createHash } from 'node:crypto';
import type { DeliveryRun } from '../dispatch/delivery-run.ts';
import { failuresOf, pauseOf } from '../webhooks/retry-schedule.ts';
import {
  deleteObjects,
  findManifest,
  hasBatchBefore,
  insertManifest,
  objectsOf,
  updateManifest,
} from './batch-store.ts';
import type { BatchTarget } from './batch-target.ts';
import { dayOf, manifestText, nextDay, startOfDay } from './manifest.ts';

export interface ManifestsResult {
  /** `blocked`: nothing is sent until the pause is over. */
  readonly is: 'done' | 'blocked';
  /** The first day without a manifest. No batch may begin before it. */
  readonly day: string;
  /** Milliseconds until the next work. */
  readonly pause: number;
}

/**
 * Writes the manifest of each past UTC day without a batch in progress, also of empty days. It is complete, since no
 * batch begins on a day that has a manifest.
 */
export async function deliverManifests(
  run: DeliveryRun,
  objects: NonNullable<BatchTarget['objects']>,
): Promise<ManifestsResult> {
  const { db } = run.options;
  const { tenant, id } = run;
  for (;;) {
    run.signal.throwIfAborted();
    const at = run.now();
    const today = dayOf(at);
    const due = await findManifest(db, tenant, id);
    if (due === undefined) {
      await run.settle({ counts: {}, also: (transaction) => insertManifest(transaction, tenant, id, today) });
      continue;
    }
    const { day } = due;
    const next = nextDay(day);
    const isOver = day < today && !(await hasBatchBefore(db, tenant, id, startOfDay(next)));
    if (!isOver) return { is: 'done', day, pause: startOfDay(nextDay(today)) - at };
    const stored = await objectsOf(db, tenant, id, day);
    const entries = stored.map((object) => ({ key: objects.keyOf(run.sending, { day, ...object }), ...object }));
    const text = manifestText({ tenant, subscription: id, date: day }, entries);
    const sha256 = createHash('sha256').update(text).digest('hex');
    const changes = stored.reduce((sum, object) => sum + object.changes, 0);
    const result = await run.attempt(() => objects.deliverManifest(run.sending, { day, changes, text, sha256 }));
    if (result.outcome === 'delivered') {
      await run.settle({
        counts: {},
        health: { is: 'well' },
        async also(transaction) {
          await updateManifest(transaction, tenant, id, { day: next, attempts: 0 });
          await deleteObjects(transaction, tenant, id, day);
        },
      });
      continue;
    }
    run.signal.throwIfAborted();
    const attempts = failuresOf(run, due) + 1;
    const pause = pauseOf(attempts, result.retryAfter);
    const { outcome, ...rest } = result;
    await run.settle({
      counts: {},
      health: outcome === 'suspended' ? { is: 'gone' } : { is: 'failing', rest: pause },
      attempts: outcome === 'taken' ? [] : [{ kind: 'live', at, result: { ...rest, outcome } }],
      also: (transaction) => updateManifest(transaction, tenant, id, { day, attempts }),
    });
    return { is: 'blocked', day, pause };
  }
}

/** When a batch begins, in milliseconds: now, but never on a day that has a manifest, even if clocks differ. */
export function batchStart(now: number, firstDay: string | undefined): number {
  return firstDay === undefined ? now : Math.max(now, startOfDay(firstDay));
}
