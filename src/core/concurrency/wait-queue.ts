import type { StopSignal } from '../stop-signal.ts';

/**
 * Queues callers that wait for something outside of this process. They wait in the order of their calls, and only the
 * first caller of a tenant tries to get it.
 */
export interface WaitQueue {
  /** Whether a caller of the tenant waits, so that a new caller must wait too. */
  busy(tenant: string): boolean;
  /** Resolves when the caller is the first one of its tenant. Rejects with the signal's reason. */
  enter(tenant: string, signal: StopSignal): Promise<FirstInQueue>;
  /** Reports a release: the tenant's first caller tries again at once. */
  wake(tenant: string): void;
}

export interface FirstInQueue {
  /** Waits this many milliseconds, or less if something is released. Rejects with the signal's reason. */
  pause(milliseconds: number, signal: StopSignal): Promise<void>;
  /** Makes the next caller the first one. */
  leave(): void;
}

export function createWaitQueue(): WaitQueue {
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

  async function pause(tenant: string, milliseconds: number, signal: StopSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds);
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    pauses.set(tenant, resolve);
    try {
      signal.throwIfAborted();
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      pauses.delete(tenant);
    }
  }

  return {
    busy: (tenant) => queues.has(tenant),

    async enter(tenant, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const queue = queues.get(tenant) ?? [];
      queues.set(tenant, queue);
      queue.push(resolve);
      if (queue.length === 1) resolve();
      const onAbort = () => reject(signal.reason);
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        signal.throwIfAborted();
        await promise;
      } catch (error) {
        leave(tenant, resolve);
        throw error;
      } finally {
        signal.removeEventListener('abort', onAbort);
      }
      return {
        pause: (milliseconds, during) => pause(tenant, milliseconds, during),
        leave: () => leave(tenant, resolve),
      };
    },

    wake: (tenant) => pauses.get(tenant)?.(),
  };
}
