import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import type { Static } from 'typebox';
import type { TenantPool } from '../db/connections/tenant-pool.ts';
import { type Days, dateOf, dayOf } from './days.ts';
import { RequestCounter } from './request-counter.ts';
import type { UsageOfDay } from './schemas.ts';
import { addMeasures, addRequests, OutcomeUnknown, readUsage } from './usage-store.ts';

/** What tenants use, by UTC day. */
export interface Usage {
  /** A line for each day, the oldest first, also for days on which nothing was used. */
  read(tenant: string, days: Days): Promise<Static<typeof UsageOfDay>[]>;
  requests: RequestCounter;
  /**
   * Adds tokens of a call with the tenant's own key; they are stored when the promise resolves. Never rejects: what cannot be
   * stored within the tries is told in the log.
   */
  addTokens(tenant: string, used: UsedTokens): Promise<void>;
}

export interface UsedTokens {
  input: number;
  output: number;
}

/** Milliseconds before each further try. */
const rests = [250, 1_000, 4_000];

export function createUsage(options: { pool: TenantPool; logger: FastifyBaseLogger; now: () => number }): Usage {
  const { pool, logger, now } = options;
  return {
    requests: new RequestCounter({
      add: (counted) => addRequests(pool, counted),
      now,
      onError: (error) => logger.warn({ err: error }, 'the requests of tenants could not be counted'),
    }),

    async addTokens(tenant, { input, output }) {
      const day = dayOf(now());
      const added = [
        { tenant, day, measure: 'inputTokens', amount: input },
        { tenant, day, measure: 'outputTokens', amount: output },
      ] as const;
      for (let tried = 0; ; tried += 1) {
        try {
          return await addMeasures(pool, added);
        } catch (error) {
          const rest = rests[tried];
          // What may have been stored is not stored again.
          if (error instanceof OutcomeUnknown || rest === undefined) {
            logger.error(
              { err: error, tenant, day: dateOf(day), input, output },
              'the tokens of a call could not be counted',
            );
            return;
          }
          await sleep(rest, undefined, { ref: false });
        }
      }
    },

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
