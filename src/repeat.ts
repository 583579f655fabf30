import { setTimeout as sleep } from 'node:timers/promises';

export interface Repeated {
  /** Milliseconds of rest after a turn. */
  readonly every: number;
  /** Ends it: the turn that runs is the last. */
  readonly signal: AbortSignal;
  turn(): Promise<void>;
  /** Told what a turn has thrown; the next one comes all the same. */
  onError(error: unknown): void;
}

/** Does a piece of work turn after turn; resolves when the last has ended. It keeps no process alive. */
export async function repeat({ every, signal, turn, onError }: Repeated): Promise<void> {
  while (!signal.aborted) {
    try {
      await turn();
    } catch (error) {
      onError(error);
    }
    await rest(every, signal);
  }
}

/** Lets so many milliseconds pass, or fewer where the signal is given. It keeps no process alive. */
export async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal, ref: false }).catch(() => {});
}
