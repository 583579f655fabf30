import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import pg from 'pg';

/** Settlements that must not be lost while this process lives. */
export interface Settlements {
  /** Tries once and returns. Retries a failed attempt in the background. */
  settle(attempt: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

// Milliseconds. If the process ends before a settlement succeeds, the whole reservation is charged when its lease
// expires.
const minRest = 250;
const maxRest = 10_000;
const maxCloseWait = 3_000;

/** How often the database may refuse a settlement's values when sent alone: concurrent writes may be at fault. */
const maxRefusals = 3;

export function createSettlements(logger: FastifyBaseLogger): Settlements {
  const underWay = new Set<Promise<void>>();
  /** By attempt: how often the database has refused its values. */
  const failed = new Map<() => Promise<void>, number>();
  const stop = new AbortController();

  /** In rounds, so that an unreachable database causes one log line per round instead of one per call. */
  async function repeat(): Promise<void> {
    for (let rest = minRest; failed.size > 0; rest = Math.min(maxRest, rest * 2)) {
      await sleep(rest, undefined, { signal: stop.signal, ref: false });
      const attempts = [...failed];
      const errors = await Promise.all(
        attempts.map(([attempt, refusals]) => (refusals > 0 ? undefined : retry(attempt))),
      );
      // Settlements of a tenant share a transaction. A refused one must not fail the others.
      for (const [attempt, refusals] of attempts) if (refusals > 0) errors.push(await retry(attempt));
      const [error] = errors.filter((failure) => failure !== undefined);
      if (error !== undefined && failed.size > 0) warn(error);
    }
  }

  /** Returns the error of a failed attempt that is to be retried. */
  async function retry(attempt: () => Promise<void>): Promise<unknown> {
    try {
      await attempt();
      failed.delete(attempt);
      return undefined;
    } catch (error) {
      const refusals = (failed.get(attempt) ?? 0) + (isRefusal(error) ? 1 : 0);
      if (refusals <= maxRefusals) {
        failed.set(attempt, refusals);
        return error;
      }
      failed.delete(attempt);
      logger.error({ err: error }, 'a settlement of a call cannot be stored and was dropped');
      return undefined;
    }
  }

  function warn(err: unknown): void {
    logger.warn({ err, calls: failed.size }, 'a settlement of calls failed; retrying');
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
        failed.set(attempt, isRefusal(error) ? 1 : 0);
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

/** Whether the database will never accept the values: error class 22, data exception. */
function isRefusal(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code?.startsWith('22') === true;
}
