import { randomUUIDv7 } from 'node:crypto';
import type pg from 'pg';
import type { CallLedger, QuotaRequest, Reservation } from '../../../src/providers/call-ledger.ts';
import type { CallEnd, CallStart } from '../../../src/providers/call-record.ts';
import type { FailedUsage } from '../../../src/providers/port.ts';

/** A call that is about to leave. */
export function callStart(known: Partial<CallStart> = {}): CallStart {
  const id = randomUUIDv7();
  return {
    id,
    at: Date.now(),
    operation: 'completion',
    token: 'shared',
    provider: 'openai',
    model: 'm',
    clientId: 'c',
    price: undefined,
    ...known,
  };
}

/** Reserves so many tokens of input for a call that has to reserve. */
export async function reserveTokens(
  ledger: Pick<CallLedger, 'reserve'>,
  { input, ...request }: Omit<QuotaRequest, 'input'> & { readonly input: number },
): Promise<Reservation> {
  const reservation = await ledger.reserve({ ...request, input: { tokens: input, images: 0 } });
  if (reservation === undefined) throw new Error('the call reserved nothing');
  return reservation;
}

/** The end of a call that used so much. */
export function endedCall(usage: FailedUsage): CallEnd {
  const reported = typeof usage === 'object' ? usage : { inputTokens: undefined, outputTokens: undefined };
  return { usage, reported, durationMs: 1, finishReason: 'stop' };
}

/** Where the sums of a tenant differ from the sums over the records of its calls. By the law of sums: nowhere. */
export async function wrongSums(pool: pg.Pool, tenant: string): Promise<unknown[]> {
  await pool.query('select call_sum_records($1)', [tenant]);
  const { rows } = await pool.query(
    `select by, day, name, calls, uncosted, input, output, cost::text from call_sum where tenant = $1 and calls <> 0
     except all
     select part.by, floor(extract(epoch from at) / 86400)::integer, part.name, count(*),
            count(*) filter (where cost is null), coalesce(sum(input_tokens), 0)::bigint,
            coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(cost), 0)::text
       from call_record
       cross join lateral (values ('all', ''), ('client', client), ('agent', agent), ('model', model),
                                  ('provider', provider), ('user', case when user_fixed is distinct from false then end_user end),
                                  ('key user', case when user_fixed then end_user end)
                           union all select 'maker', unnest(string_to_array(maker, ' '))) as part (by, name)
       where tenant = $1 and part.name is not null
       group by 1, 2, 3`,
    [tenant],
  );
  const { rows: counts } = await pool.query(
    `select coalesce(sum(calls), 0)::bigint as calls,
            (select count(*) from call_record where tenant = $1)::bigint as records
       from call_sum where tenant = $1 and by = 'all'`,
    [tenant],
  );
  return [...rows, ...counts.filter(({ calls, records }) => calls !== records)];
}
