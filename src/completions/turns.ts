/** Callers of one tenant that wait, in the order they came; only the first of them tries. */
export interface Turns {
  /** Whether somebody waits, so that a newcomer has to stand behind. */
  busy(tenant: string): boolean;
  /** Resolves when it is the caller's turn; rejects with the signal's reason. */
  take(tenant: string, signal: AbortSignal): Promise<Turn>;
  /** Something was given back: the first one may try at once. */
  wake(tenant: string): void;
}

export interface Turn {
  /** Until something is given back here, or that many milliseconds; rejects with the signal's reason. */
  pause(milliseconds: number, signal: AbortSignal): Promise<void>;
  /** Lets the next one have its turn. */
  leave(): void;
}

export function createTurns(): Turns {
  const queues = new Map<string, (() => void)[]>();
  const pauses = new Map<string, () => void>();

  function leave(tenant: string, mine: () => void): void {
    const queue = queues.get(tenant) ?? [];
    const place = queue.indexOf(mine);
    if (place === -1) return;
    queue.splice(place, 1);
    if (queue.length === 0) queues.delete(tenant);
    else if (place === 0) queue[0]?.();
  }

  return {
    busy: (tenant) => queues.has(tenant),

    async take(tenant, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const queue = queues.get(tenant) ?? [];
      queues.set(tenant, queue);
      queue.push(resolve);
      if (queue.length === 1) resolve();
      const giveUp = () => reject(signal.reason);
      signal.addEventListener('abort', giveUp, { once: true });
      try {
        signal.throwIfAborted();
        await promise;
      } catch (error) {
        leave(tenant, resolve);
        throw error;
      } finally {
        signal.removeEventListener('abort', giveUp);
      }
      return {
        pause: (milliseconds, during) => pauseOf(tenant, milliseconds, during),
        leave: () => leave(tenant, resolve),
      };
    },

    wake: (tenant) => pauses.get(tenant)?.(),
  };

  async function pauseOf(tenant: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    const giveUp = () => reject(signal.reason);
    signal.addEventListener('abort', giveUp, { once: true });
    pauses.set(tenant, resolve);
    try {
      signal.throwIfAborted();
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      pauses.delete(tenant);
    }
  }
}
