/** The max. durations of a call, in milliseconds (contract 7). */
export interface CallTimes {
  /** The max. time without a byte from the provider. */
  readonly silence: number;
  /** The max. time for the whole answer. */
  readonly total: number;
}

/** 60 seconds of silence, 10 minutes in total. */
export const defaultCallTimes: CallTimes = { silence: 60_000, total: 600_000 };

/** Each call ends with it. Without a reason of its own a signal makes an error, with its stack. */
const hasEnded = 'the call has ended';

/** The deadline of one call and the reason of its end. */
export interface CallDeadline {
  readonly signal: AbortSignal;
  /** Why the signal is aborted. Returns undefined where it is not aborted, or where `end` aborted it. */
  reason(): 'timeout' | 'aborted' | undefined;
  /** The provider has sent something, so the silence timer restarts. */
  heard(): void;
  /** The service does not read at the moment, so the provider's silence does not count. */
  paused(): void;
  /** Clears the timers, and aborts what is still open; `isOver`: nothing is. */
  end(isOver?: boolean): void;
}

/** Starts the deadline now. The caller's signal ends the call, too. */
export function startDeadline({ silence, total }: CallTimes, caller: AbortSignal | undefined): CallDeadline {
  const controller = new AbortController();
  let reason: 'timeout' | 'aborted' | undefined;
  const abort = (because: 'timeout' | 'aborted') => {
    reason ??= because;
    controller.abort();
  };
  const onAbort = () => abort('aborted');
  // Own timers, because a timer of AbortSignal.timeout runs for its whole time, long after the call.
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
