import { sql } from 'kysely';
import type { Static } from 'typebox';
import { AnnalsError } from '../../core/errors.ts';
import { type Days, dateOf } from '../../http/days.ts';
import type { Database } from '../../postgres/database.ts';
import type { CostsOf, CostsQuery } from './schemas.ts';
import { dollarsText, sumCalls } from './store.ts';

/** Max. named items of a response; smaller ones are summed into one. As many as call_sum_add keeps per day. */
export const maxSums = 1_000;

interface SumRow {
  name: string | null;
  isOthers: boolean;
  calls: number;
  uncosted: number;
  input: number;
  output: number;
  cost: string;
}

const sums = sql`sum(calls)::bigint as calls, sum(uncosted)::bigint as uncosted, sum(input)::bigint as input,
  sum(output)::bigint as output`;

/**
 * The cost of the calls of these days by the requested dimension, including every finished call. By day and month there
 * is an item for each, also without calls; otherwise the largest cost comes first. One statement, so one snapshot.
 */
export async function readCosts(
  db: Database,
  tenant: string,
  days: Days,
  { by = 'day', ...query }: CostsQuery,
): Promise<Static<typeof CostsOf>[]> {
  const only = nameOf(query, by);
  await sumCalls(db, tenant);
  if (by !== 'day' && by !== 'month') return (await sumsByName(db, tenant, days, by)).map(costsOf);
  const length = by === 'day' ? 10 : 7;
  const found = new Map((await sumsByTime(db, tenant, days, { length, only })).map((row) => [row.name, costsOf(row)]));
  const times = new Set<string>();
  for (let day = days.first; day <= days.last; day += 1) times.add(dateOf(day).slice(0, length));
  return [...times].map((name) => found.get(name) ?? costsOf({ name, ...noCalls }));
}

const names = ['client', 'agent', 'model', 'provider', 'user'] as const;

interface NamedSum {
  readonly by: string;
  readonly name: string;
}

/** The filter of the calls. Throws validation_violation for two, and where the sums are not by time. */
function nameOf(query: CostsQuery, by: string): NamedSum {
  const [filter, second] = names.filter((name) => query[name] !== undefined);
  if (filter === undefined) return { by: 'all', name: '' };
  const message =
    second !== undefined
      ? `must be left out beside ${filter}`
      : 'must be left out where the sums are not by day or month';
  if (second !== undefined || (by !== 'day' && by !== 'month')) {
    const field = second ?? filter;
    throw new AnnalsError('validation_violation', `${field} ${message}`, { details: [{ field, message }] });
  }
  return { by: filter, name: query[filter] ?? '' };
}

/** By the first characters of dates. */
async function sumsByTime(
  db: Database,
  tenant: string,
  { first, last }: Days,
  { length, only }: { length: number; only: NamedSum },
): Promise<SumRow[]> {
  const { rows } = await sql<SumRow>`
    select left((date '1970-01-01' + day)::text, ${length}) as name, false as "isOthers", ${sums}, ${dollarsText(sql`sum(cost)`)} as cost
      from call_sum
      where tenant = ${tenant} and by = ${only.by} and name = ${only.name} and day between ${first} and ${last}
      group by 1`.execute(db);
  return rows;
}

/** The difference between all calls and the named ones belongs to calls without a name: of no agent, for no user. */
async function sumsByName(db: Database, tenant: string, { first, last }: Days, by: string): Promise<SumRow[]> {
  const { rows } = await sql<SumRow>`
    with part as (
      select by, name, ${sums}, sum(cost) as cost,
             row_number() over (partition by by order by sum(cost) desc, sum(calls) desc, name) as place
        from call_sum
        where tenant = ${tenant} and by in (${by}, ${`other ${by}`}, 'all') and day between ${first} and ${last}
        group by by, name
    ), counted as (
      select by = ${by} and place <= ${maxSums} as is_named, by <> 'all' as is_told, name, calls, uncosted, input, output, cost
        from part
      union all
      select false, false, null, -calls, -uncosted, -input, -output, -cost from part where by <> 'all'
    )
    select case when is_named then name end as name, is_told and not is_named as "isOthers", ${sums},
           ${dollarsText(sql`sum(cost)`)} as cost
      from counted
      group by is_named, is_told, case when is_named then name end
      having sum(calls) <> 0
      order by is_named desc, is_told desc, sum(cost) desc, sum(calls) desc, name`.execute(db);
  return rows;
}

const noCalls = { isOthers: false, calls: 0, uncosted: 0, input: 0, output: 0, cost: '0' };

function costsOf({ name, isOthers, calls, uncosted, input, output, cost }: SumRow): Static<typeof CostsOf> {
  return {
    name,
    ...(isOthers && { others: true as const }),
    calls,
    inputTokens: input,
    outputTokens: output,
    costUsd: cost,
    callsWithoutCost: uncosted,
  };
}
