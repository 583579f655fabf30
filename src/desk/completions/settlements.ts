import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';

/** Settlements that must not be lost while this process lives. */
export interface Settlements {
  /** Tries once and returns. A failed attempt is repeated in the background. */
  settle(attempt: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

// Milliseconds. If the process ends before a settlement succeeds, the full reservation is charged when its lease has
// expired.
const minRest = 250;
const maxRest = 10_000;
const maxCloseWait = 3_000;

export function createSettlements(logger: FastifyBaseLogger): Settlements {
  const underWay = new Set<Promise<void>>();
  const stop = new AbortController();

  async function again(attempt: () => Promise<void>): Promise<void> {
    for (let rest = minRest; ; rest = Math.min(maxRest, rest * 2)) {
      await sleep(rest, undefined, { signal: stop.signal, ref: false });
      try {
        await attempt();
        return;
      } catch (error) {
        logger.warn({ err: error }, 'a settlement of the quota failed; it is tried again');
      }
    }
  }

  function keep(work: Promise<void>): void {
    underWay.add(work);
    work.catch(() => {}).finally(() => underWay.delete(work));
  }

  return {
    async settle(attempt) {
      const first = attempt();
      keep(first);
      try {
        await first;
      } catch (error) {
        logger.warn({ err: error }, 'a settlement of the quota failed; it is tried again');
        keep(again(attempt));
      }
    },

    async close() {
      const settled = Promise.allSettled([...underWay]);
      await Promise.race([settled, sleep(maxCloseWait, undefined, { ref: false })]);
      stop.abort();
      await Promise.allSettled([...underWay]);
    },
  };
}
