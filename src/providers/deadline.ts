/** The max. durations of a call, in milliseconds (contract 7). */
export interface CallTimes {
  /** Max. silence of the provider. */
  readonly silence: number;
  /** Max. time of the whole answer. */
  readonly total: number;
}

/** 60 seconds of silence, 10 minutes in total. */
export const defaultCallTimes: CallTimes = { silence: 60_000, total: 600_000 };

/** The abort reason of every ended call: a constant, because a default one is an error with a stack. */
const hasEnded = 'the call has ended';

/** The deadline of one call, and why it ended. */
export interface CallDeadline {
  readonly signal: AbortSignal;
  /** Why the signal was aborted; undefined where it was not, or where `end` did it. */
  reason(): 'timeout' | 'aborted' | undefined;
  /** Restarts the silence timer: the provider has sent something. */
  heard(): void;
  /** Stops the silence timer while the service does not read. */
  paused(): void;
  /** Clears the timers and aborts what is still open, which with `isOver` is nothing. */
  end(isOver?: boolean): void;
}

/** Starts the deadline. The caller's signal ends the call as well. */
export function startDeadline({ silence, total }: CallTimes, caller: AbortSignal | undefined): CallDeadline {
  const controller = new AbortController();
  let reason: 'timeout' | 'aborted' | undefined;
  const abort = (because: 'timeout' | 'aborted') => {
    reason ??= because;
    controller.abort();
  };
  const onAbort = () => abort('aborted');
  // Not AbortSignal.timeout, whose timer outlives the call.
  const wholeTimer = setTimeout(abort, total, 'timeout');
  let silenceTimer: NodeJS.Timeout | undefined = setTimeout(abort, silence, 'timeout');
  if (caller?.aborted === true) onAbort();
  else caller?.addEventListener('abort', onAbort, { once: true });

  const stopSilence = () => {
    clearTimeout(silenceTimer);
    silenceTimer = undefined;
  };

  return {
    signal: controller.signal,
    reason: () => reason,
    heard() {
      if (controller.signal.aborted) return;
      if (silenceTimer === undefined) silenceTimer = setTimeout(abort, silence, 'timeout');
      else silenceTimer.refresh();
    },
    paused: stopSilence,
    end(isOver = false) {
      clearTimeout(wholeTimer);
      stopSilence();
      caller?.removeEventListener('abort', onAbort);
      if (!isOver) controller.abort(hasEnded);
    },
  };
}
