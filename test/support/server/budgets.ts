import type pg from 'pg';
import type { BudgetBody } from '../../../src/desk/budgets/schemas.ts';
import type { Budgets } from '../../../src/desk/budgets/service.ts';
import type { Quota } from '../../../src/desk/completions/quota.ts';
import type { Reservation } from '../../../src/providers/call-ledger.ts';
import type { CallStart } from '../../../src/providers/call-record.ts';
import type { Random } from '../oracle/random.ts';
import { callStart, endedCall, reserveTokens } from './calls.ts';

export const author = (tenant: string) => ({ tenant, actor: 'test' });

/** A token of input costs 1,000 pico-dollars, one of output 3,000. */
export const priceOfBudgets = {
  tiers: [{ above: -1, input: 1_000, cachedInput: 100, cacheWrites: 1_000, output: 3_000 }],
};

/** Makes so many random budgets, few of which have room for all calls; with `user`, tight ones of it alone. */
export async function makeRandomBudgets(
  budgets: Budgets,
  tenant: string,
  { count, random, user }: { count: number; random: Random; user?: string | undefined },
): Promise<void> {
  for (let place = 0; place < count; place += 1) {
    const tight = user === undefined ? {} : { of: { user }, limit: { limitTokens: 1_000 + random.below(1_000) } };
    await budgets.put(author(tenant), `b${place}`, randomBudget(random, tight));
  }
}

/** Of anything and with any limit, unless one is given. */
export function randomBudget(
  random: Random,
  given: { of?: { user: string }; limit?: { limitTokens: number } } = {},
): BudgetBody {
  const ofs = [
    {},
    { client: `c${random.below(3)}` },
    { agent: `a${random.below(3)}` },
    { model: `m${random.below(3)}` },
    { user: `u${random.below(3)}` },
    { user: '*' },
  ];
  const period = (['day', 'month', 'lifetime'] as const)[random.below(3)] ?? 'day';
  const tokens = 2_000 + random.below(60_000);
  const limit = random.below(2) === 0 ? { limitTokens: tokens } : { limitUsd: (tokens * 3e-9).toFixed(12) };
  return { ...(given.of ?? ofs[random.below(ofs.length)]), period, ...(given.limit ?? limit) };
}

/** Makes a random call: it reserves, leaves and ends in any way. Returns its outcome. */
export async function makeRandomCall(quota: Quota, tenant: string, random: Random): Promise<string> {
  const pick = (letter: string) => `${letter}${random.below(3)}`;
  const user = random.below(4) === 0 ? undefined : pick('u');
  const call: CallStart = callStart({
    token: random.below(4) === 0 ? 'shared' : 'own',
    // Today and yesterday, which may be of two months.
    at: Date.now() - random.below(2) * 86_400_000,
    clientId: random.below(3) === 0 ? 'key' : pick('c'),
    ...(random.below(3) === 0 && { makers: [pick('d'), pick('c')] }),
    ...(random.below(2) === 0 && { agentId: pick('a') }),
    model: pick('m'),
    user,
    // Of a key of the user.
    ...(user !== undefined && random.below(3) > 0 && { clientId: `key-${user}`, isUserFixed: true }),
    price: priceOfBudgets,
  });
  const input = 1 + random.below(300);
  let reservation: Reservation;
  try {
    reservation = await reserveTokens(quota, {
      tenant,
      call,
      input,
      output: 1 + random.below(300),
      maxDuration: 60_000,
    });
  } catch (error) {
    return error instanceof Error ? error.message.replace(/budget .*/, 'budget') : 'no error';
  }
  if (random.below(10) === 0) return 'died before it was sent';
  if (!(await reservation.send())) return 'not sent';
  await new Promise((resolve) => setTimeout(resolve, random.below(5)));
  switch (random.below(6)) {
    case 0:
      return 'died';
    case 1:
      await reservation.settle(endedCall('none'));
      return 'none';
    case 2:
      await reservation.settle(endedCall('unknown'));
      return 'unknown';
    default: {
      const usage = { inputTokens: random.below(input + 1), outputTokens: random.below(reservation.output + 1) };
      await reservation.settle({
        ...endedCall(usage),
        reported: { ...usage, cachedTokens: random.below(usage.inputTokens + 1) },
      });
      return 'answered';
    }
  }
}

/** The periods of a tenant's budgets whose calls, by their records, have used more than the budget. */
export async function overspent(pool: pg.Pool, tenant: string): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select b.id, date_trunc(case b.period when 'lifetime' then 'millennium' else b.period end, r.at at time zone 'UTC') as since,
            sum(r.cost) as cost, sum(r.input_tokens + r.output_tokens) as tokens, b.limit_cost, b.limit_tokens
       from budget b
       join call_record r on r.tenant = b.tenant and case b.by when 'client' then b.name = any (array[r.client] || string_to_array(r.maker, ' '))
                                                              when 'agent' then b.name = r.agent
                                                              when 'model' then b.name = r.model
                                                              when 'user' then b.name = r.end_user and r.user_fixed
                                                              when 'each user' then r.user_fixed else true end
       where b.tenant = $1
       group by b.tenant, b.id, 2, case b.by when 'each user' then r.end_user end
       having sum(r.cost) > b.limit_cost or sum(r.input_tokens + r.output_tokens) > b.limit_tokens`,
    [tenant],
  );
  return rows;
}
