import { createHash } from 'node:crypto';
import type { Held } from '../dispatch/held.ts';
import { failuresOf, pauseOf } from './batch-schedule.ts';
import {
  deleteListed,
  findManifest,
  hasBatchBefore,
  insertManifest,
  objectsOf,
  updateManifest,
} from './batch-store.ts';
import type { BatchTarget } from './batch-target.ts';
import { beginOfDay, dayOf, manifestText, nextDay } from './manifest.ts';

export interface ManifestsDone {
  /** `blocked`: nothing else is sent before the pause is over. */
  readonly is: 'done' | 'blocked';
  /** The first day without a manifest: no batch may begin on an earlier one. */
  readonly day: string;
  /** Milliseconds until there is something to do. */
  readonly pause: number;
}

/**
 * Writes the manifest of each UTC day that is over and of which no batch is under way, empty days too. A day's list is
 * complete then: no batch begins on a day that has one.
 */
export async function deliverManifests(
  held: Held,
  objects: NonNullable<BatchTarget['objects']>,
): Promise<ManifestsDone> {
  const { db } = held.options;
  const { tenant, id } = held;
  for (;;) {
    held.signal.throwIfAborted();
    const at = held.now();
    const today = dayOf(at);
    const due = await findManifest(db, tenant, id);
    if (due === undefined) {
      await held.settle({ counts: {}, also: (transaction) => insertManifest(transaction, tenant, id, today) });
      continue;
    }
    const { day } = due;
    const next = nextDay(day);
    const isOver = day < today && !(await hasBatchBefore(db, tenant, id, beginOfDay(next)));
    if (!isOver) return { is: 'done', day, pause: beginOfDay(nextDay(today)) - at };
    const stored = await objectsOf(db, tenant, id, day);
    const listed = stored.map((object) => ({ key: objects.keyOf(held.sending, { day, ...object }), ...object }));
    const text = manifestText({ tenant, subscription: id, date: day }, listed);
    const sha256 = createHash('sha256').update(text).digest('hex');
    const changes = stored.reduce((sum, object) => sum + object.changes, 0);
    const result = await held.attempt(() => objects.deliverManifest(held.sending, { day, changes, text, sha256 }));
    if (result.outcome === 'delivered') {
      await held.settle({
        counts: {},
        health: { is: 'well' },
        async also(transaction) {
          await updateManifest(transaction, tenant, id, { day: next, attempts: 0 });
          await deleteListed(transaction, tenant, id, day);
        },
      });
      continue;
    }
    held.signal.throwIfAborted();
    const attempts = failuresOf(held, due) + 1;
    const pause = pauseOf(attempts, result.retryAfter);
    const { outcome, ...others } = result;
    await held.settle({
      counts: {},
      health: outcome === 'suspended' ? { is: 'gone' } : { is: 'failing', rest: pause },
      attempts: outcome === 'taken' ? [] : [{ kind: 'live', at, result: { ...others, outcome } }],
      also: (transaction) => updateManifest(transaction, tenant, id, { day, attempts }),
    });
    return { is: 'blocked', day, pause };
  }
}

/** When a batch begins, in milliseconds: now, but not on a day that has a manifest, whatever the clocks of processes say. */
export function beginOfBatch(now: number, firstDay: string | undefined): number {
  return firstDay === undefined ? now : Math.max(now, beginOfDay(firstDay));
}
