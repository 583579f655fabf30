/** How long a call may take, in milliseconds (contract 7). */
export interface CallTimes {
  /** Without a byte from the provider. */
  readonly silence: number;
  /** For the whole answer. */
  readonly total: number;
}

/** 60 s of silence, 10 minutes in all. */
export const defaultCallTimes: CallTimes = { silence: 60_000, total: 600_000 };

/** The end of one call: when it comes, and why. */
export interface CallDeadline {
  readonly signal: AbortSignal;
  /** Why the signal is aborted; undefined where it is not, or was by `end`. */
  reason(): 'timeout' | 'aborted' | undefined;
  /** The provider sent something: its silence begins anew. */
  heard(): void;
  /** We do not read at the moment, so the provider's silence is not its own. */
  paused(): void;
  /** Lets go of the timers, and aborts what is still open. */
  end(): void;
}

/** Begins now. The caller's signal ends the call as well. */
export function startDeadline({ silence, total }: CallTimes, caller: AbortSignal | undefined): CallDeadline {
  const controller = new AbortController();
  let reason: 'timeout' | 'aborted' | undefined;
  const abort = (because: 'timeout' | 'aborted') => {
    reason ??= because;
    controller.abort();
  };
  const onAbort = () => abort('aborted');
  // Timers of our own: those of AbortSignal.timeout live on for their whole time, long after the call.
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
    end() {
      clearTimeout(wholeTimer);
      stopSilence();
      caller?.removeEventListener('abort', onAbort);
      controller.abort();
    },
  };
}
