import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../core/errors.ts';
import { GrowingPause } from '../../core/repeat.ts';
import { isStarting } from '../../postgres/connections/once-started.ts';
import { RefusedChangesError } from '../../recording/mapping/record-mapped.ts';
import type { CaptureOptions } from './capture-options.ts';
import { defaultHeartbeat, runSession } from './session.ts';
import { CaptureFigures, isInUse, SlotWatch } from './slot.ts';

/** Backoff in milliseconds while a database is unavailable. */
const pauses = { min: 200, max: 5_000 };

/**
 * Records the changes of the mapped tables until the signal (recording.md 5), with retries while a database is
 * unavailable. Throws a CaptureError if the operator must act, and a GapError if changes are missing.
 */
export async function capture(options: CaptureOptions): Promise<void> {
  const { signal, log } = options;
  const figures = options.figures ?? new CaptureFigures();
  const slotWatch = new SlotWatch({
    slot: options.slot,
    figures,
    log,
    interval: options.heartbeat ?? defaultHeartbeat,
  });
  let { choice } = options;
  let hasRun = false;
  const pause = new GrowingPause(pauses);
  const onRunning = (tables: readonly string[]) => {
    if (!hasRun) options.onRunning?.(tables);
    hasRun = true;
    // The choice applies to the gap at the start. A later gap stops capture again.
    choice = { ...choice, resync: false, acceptGap: false };
  };
  while (!signal.aborted) {
    try {
      await runSession(
        { ...options, slotWatch, choice },
        {
          onRunning,
          // Not when the stream starts: with a full disk it starts, and then each batch fails.
          onRecorded: () => pause.reset(),
        },
      );
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof OperatorError || error instanceof RefusedChangesError) throw error;
      if (!(hasRun || isInUse(error) || isStarting(error))) throw error;
      const wait = pause.next();
      log.warn({ err: error }, `capture stopped and tries again in ${wait} ms`);
      await slotWatch.lookWhileAway(options.source);
      await sleep(wait, undefined, { signal }).catch(() => {});
    }
  }
}
