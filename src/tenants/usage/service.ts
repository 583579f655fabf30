import type { FastifyBaseLogger } from 'fastify';
import type { Static } from 'typebox';
import { type Days, dateOf, dayOf } from '../../http/days.ts';
import type { TenantPool } from '../../postgres/connections/tenant-pool.ts';
import { OutcomeUnknown, TenantCounter } from '../../postgres/tenants/tenant-counter.ts';
import type { UsageOfDay } from './schemas.ts';
import { type AddedMeasure, addMeasures, readUsage } from './usage-store.ts';

/** The usage of tenants by UTC day. */
export interface Usage {
  /** One row per day, oldest first, including days without usage. */
  read(tenant: string, days: Days): Promise<Static<typeof UsageOfDay>[]>;
  /** Counts a request. Stored within 2 seconds. */
  countRequest(tenant: string): void;
  /** Stores the counts so far. */
  store(): Promise<void>;
  /** Stores the remaining counts. Call it when no request is running. */
  close(): Promise<void>;
}

export function createUsage(options: {
  pool: TenantPool;
  logger: FastifyBaseLogger;
  now: () => number;
  /** Counts the tokens of all finished model calls. */
  sumCalls: (tenant: string) => Promise<void>;
}): Usage {
  const { pool, logger, now, sumCalls } = options;
  const onError = (err: unknown, counted: readonly AddedMeasure[]) => {
    if (err instanceof OutcomeUnknown) logger.error({ err, counted }, 'the usage of tenants may not have been counted');
    else logger.warn({ err }, 'the usage of tenants could not be counted; retrying');
  };
  const requests = new TenantCounter<AddedMeasure>({
    keyOf: ({ tenant, day, measure }) => `${day} ${measure} ${tenant}`,
    sum: (earlier, later) => ({ ...later, amount: earlier.amount + later.amount }),
    add: (counted) => addMeasures(pool, counted),
    onError,
  });
  return {
    countRequest: (tenant) => requests.count({ tenant, day: dayOf(now()), measure: 'requests', amount: 1 }),

    store: () => requests.store(),

    close: () => requests.close(),

    async read(tenant, days) {
      await sumCalls(tenant);
      const lines = new Map<number, Static<typeof UsageOfDay>>();
      for (let day = days.first; day <= days.last; day += 1) {
        lines.set(day, { date: dateOf(day), entries: 0, bytes: 0, requests: 0, inputTokens: 0, outputTokens: 0 });
      }
      for (const { day, measure, amount } of await readUsage(pool, tenant, days)) {
        const line = lines.get(day);
        if (line !== undefined) line[measure] = amount;
      }
      return [...lines.values()];
    },
  };
}
