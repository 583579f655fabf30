import { setTimeout as sleep } from 'node:timers/promises';

export interface Repeated {
  /** Milliseconds between the end of a run and the next run. */
  readonly every: number;
  /** Ends the repetition: the current run is the last one. */
  readonly signal: AbortSignal;
  run(): Promise<void>;
  /** Called with what a run has thrown. The next run comes all the same. */
  onError(error: unknown): void;
}

/** Runs work again and again, and resolves when the last run has ended. It does not keep the process alive. */
export async function repeat({ every, signal, run, onError }: Repeated): Promise<void> {
  while (!signal.aborted) {
    try {
      await run();
    } catch (error) {
      onError(error);
    }
    await rest(every, signal);
  }
}

/** Waits so many milliseconds, or until the signal is aborted. It does not keep the process alive. */
export async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal, ref: false }).catch(() => {});
}
