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
  const failed = new Set<() => Promise<void>>();
  const stop = new AbortController();

  /** In rounds, so that a database that is away gets a line in the log for each round and not for each call. */
  async function repeat(): Promise<void> {
    for (let rest = minRest; failed.size > 0; rest = Math.min(maxRest, rest * 2)) {
      await sleep(rest, undefined, { signal: stop.signal, ref: false });
      const attempts = [...failed];
      const ended = await Promise.allSettled(attempts.map((attempt) => attempt()));
      for (const [index, { status }] of ended.entries()) {
        const attempt = attempts[index];
        if (status === 'fulfilled' && attempt !== undefined) failed.delete(attempt);
      }
      const refused = ended.find(({ status }) => status === 'rejected');
      if (refused?.status === 'rejected') warn(refused.reason);
    }
  }

  function warn(err: unknown): void {
    logger.warn({ err, calls: failed.size }, 'a settlement of calls failed; it is tried again');
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
        failed.add(attempt);
        if (failed.size > 1) return;
        warn(error);
        keep(repeat());
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
