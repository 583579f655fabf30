import type { FastifyBaseLogger } from 'fastify';
import type { Static } from 'typebox';
import type { TenantPool } from '../db/tenant-pool.ts';
import { type Days, dateOf } from './days.ts';
import { RequestCounter } from './request-counter.ts';
import type { UsageOfDay } from './schemas.ts';
import { addRequests, readUsage } from './usage-store.ts';

/** What tenants use, by UTC day. */
export interface Usage {
  /** A line for each day, the oldest first, also for days on which nothing was used. */
  read(tenant: string, days: Days): Promise<Static<typeof UsageOfDay>[]>;
  requests: RequestCounter;
}

export function createUsage(options: { pool: TenantPool; logger: FastifyBaseLogger; now: () => number }): Usage {
  const { pool, logger, now } = options;
  return {
    requests: new RequestCounter({
      add: (counted) => addRequests(pool, counted),
      now,
      onError: (error) => logger.warn({ err: error }, 'the requests of tenants could not be counted'),
    }),

    async read(tenant, days) {
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
