import type { FastifyBaseLogger } from 'fastify';
import { type Static, Type } from 'typebox';
import { TenantName } from '../../http/chosen-id.ts';
import { type Days, dateOf, dayOf } from '../../http/days.ts';
import type { TenantPool } from '../../postgres/connections/tenant-pool.ts';
import { addCounts, type CountingPool, OutcomeUnknown, TenantCounter } from '../../postgres/tenants/tenant-counter.ts';

export const UsagePath = Type.Object({ tenant: TenantName });

const int64 = (description: string) => Type.Integer({ format: 'int64', description });

const UsageOfDay = Type.Object(
  {
    date: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description: 'The UTC day.' }),
    entries: int64('Changes that Annals recorded on this day. The time of the changes does not matter. Exact.'),
    bytes: int64('The size of these entries in bytes of UTF-8. Exact.'),
    requests: int64('Requests with a valid token and scope, with any answer. Delayed by some seconds.'),
    inputTokens: int64('Input tokens of all calls of models, as the quota and the providers count them. Exact.'),
    outputTokens: int64('Output tokens of all calls of models, as the quota and the providers count them. Exact.'),
  },
  {
    $id: 'UsageOfDay',
    examples: [
      { date: '2026-09-01', entries: 1204, bytes: 482_113, requests: 5310, inputTokens: 81_200, outputTokens: 9_050 },
    ],
  },
);

export const UsageAnswer = Type.Array(UsageOfDay);

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

type Measure = 'entries' | 'bytes' | 'requests' | 'inputTokens' | 'outputTokens';

interface CountedMeasure {
  /** Days since 1970-01-01. */
  day: number;
  measure: Measure;
  amount: number;
}

/** The tenant's usage on these days, including entries not yet aggregated. One statement, so one snapshot. */
async function readUsage(pool: TenantPool, tenant: string, days: Days): Promise<CountedMeasure[]> {
  const { rows } = await pool.query<{ day: number; measure: Measure; amount: number }>({
    name: 'usage_read',
    text: `
      select day, measure, sum(amount)::bigint as amount
        from (
          select u.day, u.measure, u.amount from usage_count u
            where u.tenant = $1 and u.day between $2::integer and $3::integer
          union all
          select d.day, part.measure, part.amount
            from change_delta d
            cross join lateral (values ('entries', cardinality(d.ats)::bigint), ('bytes', d.bytes)) as part (measure, amount)
            where d.tenant = $1 and d.day between $2::integer and $3::integer
        ) as counted
        group by day, measure`,
    values: [tenant, days.first, days.last],
  });
  return rows;
}

/** An increment of a tenant's usage on a day. */
interface AddedMeasure extends CountedMeasure {
  tenant: string;
}

/**
 * Adds the increments, all or none, except those of deleted tenants. Rejects with OutcomeUnknown if the connection is
 * lost.
 */
async function addMeasures(pool: CountingPool, added: readonly AddedMeasure[]): Promise<void> {
  await addCounts(pool, {
    name: 'usage_add',
    // Every writer uses the same order, to avoid deadlocks.
    text: `
      insert into usage_count as so_far (tenant, day, measure, amount)
        select t.tenant, used.day, used.measure, used.amount
          from unnest($1::text[], $2::integer[], $3::text[], $4::bigint[]) as used (tenant, day, measure, amount)
          join tenant t on t.tenant = used.tenant
          order by t.tenant, used.day, used.measure
        on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount`,
    values: [
      added.map(({ tenant }) => tenant),
      added.map(({ day }) => day),
      added.map(({ measure }) => measure),
      added.map(({ amount }) => amount),
    ],
  });
}
