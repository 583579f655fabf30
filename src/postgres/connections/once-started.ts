import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds between two attempts. */
const pause = 500;

/** Whether a server refused a connection because it starts, recovers or shuts down (SQLSTATE cannot_connect_now). */
export function isStarting(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return ('code' in error && error.code === '57P03') || isStarting(error.cause);
}

/** Retries the work while the server is starting. Returns undefined if the signal is aborted first. */
export async function onceStarted<Result>(
  work: () => Promise<Result>,
  { signal, onWait }: { signal: AbortSignal; onWait: () => void },
): Promise<Result | undefined> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isStarting(error)) throw error;
      if (attempt === 0) onWait();
      await sleep(pause, undefined, { signal }).catch(() => {});
    }
  }
  return undefined;
}
