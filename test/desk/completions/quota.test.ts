import fc from 'fast-check';
import type { QueryConfig } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { inputBound } from '../../../src/desk/completions/input-bound.ts';
import { Quota, quotaLimits } from '../../../src/desk/completions/quota.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import type { Reservation } from '../../../src/providers/call-ledger.ts';
import type { CallStart } from '../../../src/providers/call-record.ts';
import { callStart, endedCall, reserveTokens, wrongSums } from '../../support/server/calls.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';

let database: TestDatabase;
let quota: Quota;
let tenants = 0;

/** How a call ends; figures are shares of what was reserved. */
type End = 'none' | 'unknown' | 'dead' | 'dead before it was sent' | { input: number; output: number };

beforeAll(async () => {
  database = await createTestDatabase();
  const { pool, db } = database;
  quota = new Quota({ pool, db, logger: createLogger('silent'), maxWait: 100 });
});

afterAll(async () => {
  await quota.close();
  await database.drop();
});

const step = fc.record({
  input: fc.integer({ min: 0, max: 900_000 }),
  output: fc.integer({ min: 16, max: 300_000 }),
  end: fc.oneof(
    fc.constant('none' as const),
    fc.constant('unknown' as const),
    fc.constant('dead' as const),
    fc.constant('dead before it was sent' as const),
    fc.record({
      input: fc.double({ min: 0, max: 1, noNaN: true }),
      output: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  ),
  late: fc.boolean(),
  leaving: fc.boolean(),
});

test('a plain account of any calls, one after another or overlapping, agrees with what the database says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const tenant = await newTenant();
      const used = { input: 0, output: 0 };
      const open: { reservation: Reservation; step: (typeof steps)[number]; input: number }[] = [];
      for (const planned of steps) {
        const reserved = {
          input: open.reduce((sum, { input }) => sum + input, 0),
          output: open.reduce((sum, { reservation }) => sum + reservation.output, 0),
        };
        const sends = planned.end !== 'dead before it was sent';
        const outcome = await reserve(tenant, planned, { sends, isLeaving: sends && planned.leaving });
        const cap = Math.min(planned.output, quotaLimits.output - used.output);
        if (used.input + planned.input > quotaLimits.input || used.output + 16 > quotaLimits.output) {
          expect(outcome).toBe('quota_exceeded');
        } else if (
          used.input + reserved.input + planned.input > quotaLimits.input ||
          used.output + reserved.output + cap > quotaLimits.output
        ) {
          expect(outcome).toBe('service_unavailable');
        } else {
          expect(outcome).toMatchObject({ output: cap });
          if (typeof outcome === 'object') open.push({ reservation: outcome, step: planned, input: planned.input });
        }
        if (planned.late) continue;
        for (const { reservation, step: ended, input } of open.splice(0)) {
          const tokens = await end(tenant, reservation, ended.end, input);
          used.input += tokens.input;
          used.output += tokens.output;
        }
      }
      const reserved = { input: 0, output: 0 };
      for (const { reservation, input } of open) {
        reserved.input += input;
        reserved.output += reservation.output;
      }
      expect(await quota.state(tenant)).toEqual({ used, reserved });
      expect(await wrongSums(database.pool, tenant)).toEqual([]);
    }),
    { numRuns: 40 },
  );
});

test('many at once never reserve more than there is, and all that fits is used', async () => {
  const tenant = await newTenant();
  const outcomes = await Promise.all(Array.from({ length: 40 }, () => reserve(tenant, { input: 100, output: 40_000 })));
  expect(outcomes.filter((outcome) => typeof outcome === 'object')).toHaveLength(25);
  expect(outcomes.filter((outcome) => outcome === 'service_unavailable')).toHaveLength(15);
  expect(await quota.state(tenant)).toMatchObject({ reserved: { input: 2_500, output: 1_000_000 } });
});

describe('a reservation that is made when its call leaves', () => {
  const small = { input: 10, output: 20 };
  /** A tenant whose last call got all that it requested. */
  const ample = async () => {
    const tenant = await newTenant();
    expect(leavingOf(tenant, small)).toBe(undefined);
    const first = await reserve(tenant, small);
    if (typeof first === 'object') await first.settle(endedCall('none'));
    return tenant;
  };
  const rowsOf = async (tenant: string) => {
    const { rows } = await database.pool.query(
      `select sent, input, output, expires_at > now() + interval '80 s' as outlives from completion_reservation where tenant = $1`,
      [tenant],
    );
    return rows;
  };

  test('is there once it is sent, outlives its call, and is settled as others are', async () => {
    const tenant = await ample();
    const leaving = leavingOf(tenant, small);
    expect(leaving?.output).toBe(20);
    expect(await rowsOf(tenant)).toEqual([]);
    expect(await leaving?.send()).toBe(true);
    expect(await rowsOf(tenant)).toEqual([{ sent: true, input: 10, output: 20, outlives: true }]);
    await leaving?.settle(endedCall({ inputTokens: 3, outputTokens: 4 }));
    await leaving?.settle(endedCall('unknown'));
    expect(await quota.state(tenant)).toEqual({ used: { input: 3, output: 4 }, reserved: { input: 0, output: 0 } });
    expect(await rowsOf(tenant)).toEqual([]);
    expect(await wrongSums(database.pool, tenant)).toEqual([]);
  });

  test('takes nothing where its call does not leave', async () => {
    const tenant = await ample();
    const leaving = leavingOf(tenant, small);
    expect(await leaving?.settle(endedCall('none'))).toEqual({ input: 0, output: 0 });
    expect(await quota.state(tenant)).toEqual({ used: { input: 0, output: 0 }, reserved: { input: 0, output: 0 } });
  });

  test('is charged in full where its process dies', async () => {
    const tenant = await ample();
    await leavingOf(tenant, small)?.send();
    await endLeases(tenant);
    expect(await quota.state(tenant)).toEqual({ used: small, reserved: { input: 0, output: 0 } });
  });

  test('whose answer was lost on the way back is given back', async () => {
    const losing = new Quota({ pool: losingAnswer(3), db: database.db, logger: createLogger('silent') });
    const tenant = await newTenant();
    const request = { tenant, call: callStart(), input: { tokens: 10, images: 0 }, output: 20, maxDuration: 60_000 };
    await (await losing.reserve(request))?.settle(endedCall('none'));
    const leaving = losing.reserveOnSend({ ...request, call: callStart() });
    await expect(leaving?.send()).rejects.toThrow('connection lost');
    expect(await rowsOf(tenant)).toHaveLength(1);
    await leaving?.settle(endedCall('none'));
    await losing.close();
    expect(await rowsOf(tenant)).toEqual([]);
    expect(await quota.state(tenant)).toEqual({ used: { input: 0, output: 0 }, reserved: { input: 0, output: 0 } });
  });

  test.each([
    ['the last token of output', { output: quotaLimits.output }, true],
    ['one more', { output: quotaLimits.output + 1 }, false],
    ['the last token of input', { input: quotaLimits.input }, true],
    ['one more', { input: quotaLimits.input + 1 }, false],
  ])('gets %s of the quota: %j', async (_, override, leaves) => {
    const tenant = await ample();
    expect(await leavingOf(tenant, { ...small, ...override })?.send()).toBe(leaves);
    expect(await rowsOf(tenant)).toHaveLength(leaves ? 1 : 0);
    // After a call that did not get all, calls reserve before they leave for a while.
    expect(leavingOf(tenant, small) !== undefined).toBe(leaves);
  });

  test('is not made beside a budget, or a reservation whose lease has ended', async () => {
    const [limited, expired] = [await ample(), await ample()];
    await database.pool.query(
      `insert into budget (tenant, id, version, document, fields, by, name, period, limit_tokens)
         values ($1, 'b', 1, '{}', '{}', 'all', '', 'day', 1000000)`,
      [limited],
    );
    await reserve(expired, small);
    await endLeases(expired);
    for (const tenant of [limited, expired]) expect(await leavingOf(tenant, small)?.send()).toBe(false);
    expect([(await rowsOf(limited)).length, (await rowsOf(expired)).length]).toEqual([0, 1]);
  });

  test('many at once never reserve more than there is', async () => {
    const tenant = await ample();
    const amount = { input: 100, output: 40_000 };
    const leave = () => reserve(tenant, amount, { isLeaving: true });
    const outcomes = await Promise.all(Array.from({ length: 40 }, leave));
    expect(outcomes.filter((outcome) => typeof outcome === 'object')).toHaveLength(25);
    expect(await quota.state(tenant)).toMatchObject({ reserved: { input: 2_500, output: 1_000_000 } });
  });
});

test('a call that fits does not overtake one that waits', async () => {
  const tenant = await newTenant();
  const { pool, answered } = countingPool();
  const patient = new Quota({ pool, db: database.db, logger: createLogger('silent') });
  const order: string[] = [];
  const take = async (name: string, output: number) => {
    const reservation = await reserveTokens(patient, {
      tenant,
      call: callStart(),
      input: 1,
      output,
      maxDuration: 60_000,
    });
    order.push(name);
    return reservation;
  };
  const first = await take('first', quotaLimits.output - 100_000);
  const long = take('long', 200_000);
  await eventually(answered).toBeGreaterThan(1);
  const short = take('short', 16);
  await first.settle(endedCall('none'));
  await Promise.all([long, short]);
  expect(order).toEqual(['first', 'long', 'short']);
  await patient.close();
});

test('calls that reserve when they leave do not overtake one that waits for a budget, unless they are of another caller', async () => {
  const tenant = await newTenant();
  const { pool, answered } = countingPool();
  const patient = new Quota({ pool, db: database.db, logger: createLogger('silent') });
  onTestFinished(() => patient.close());
  const requestOf = (output: number, clientId = 'c') => {
    const call = callStart({ clientId });
    return { tenant, call, input: { tokens: 0, images: 0 }, output, maxDuration: 60_000 };
  };
  await (await patient.reserve(requestOf(20)))?.settle(endedCall('none'));
  await database.pool.query(
    `insert into budget (tenant, id, version, document, fields, by, name, period, limit_tokens)
       values ($1, 'b', 1, '{}', '{}', 'client', 'c', 'day', 1000)`,
    [tenant],
  );
  const first = await patient.reserve(requestOf(900));
  const before = answered();
  const order: string[] = [];
  const waiting = patient.reserve(requestOf(500)).then((reservation) => {
    order.push('waiting');
    return reservation;
  });
  await eventually(answered).toBeGreaterThan(before);
  // They fit beside the first. Beside budgets, only those that share a statement can reserve when they leave.
  const leave = (clientId: string) => {
    const leaving = [1, 2, 3].map(() => patient.reserveOnSend(requestOf(20, clientId)));
    return Promise.all(leaving.map(async (reservation) => await reservation?.send()));
  };
  expect(await leave('c')).toEqual([false, false, false]);
  expect(await leave('d')).toContain(true);
  const late = patient.reserve(requestOf(20)).then(() => order.push('late'));
  expect(order).toEqual([]);
  await first?.settle(endedCall('none'));
  await Promise.all([waiting, late]);
  expect(order).toEqual(['waiting', 'late']);
});

test('a reservation whose lease has ended is charged in full, by the next call and by the upkeep', async () => {
  for (const ask of ['reserve', 'state', 'upkeep'] as const) {
    const tenant = await newTenant();
    await reserve(tenant, { input: 10, output: 20 });
    await endLeases(tenant);
    if (ask === 'reserve') await reserve(tenant, { input: 0, output: 16 });
    if (ask === 'upkeep') await quota.upkeep(lookAtOnce(database.db));
    const { rows } =
      ask === 'state'
        ? { rows: [await stateColumns(tenant)] }
        : await database.pool.query('select input_used, output_used from completion_quota where tenant = $1', [tenant]);
    expect(rows[0]).toEqual({ input_used: 10, output_used: 20 });
  }
});

test('a reservation whose process died before the call was sent is given back when its short lease has ended', async () => {
  for (const ask of ['reserve', 'state', 'upkeep'] as const) {
    const tenant = await newTenant();
    const hasty = new Quota({
      pool: database.pool,
      db: database.db,
      logger: createLogger('silent'),
      maxWait: 100,
      unsentLease: 0,
    });
    const reservation = await reserveTokens(hasty, {
      tenant,
      call: callStart(),
      input: 10,
      output: 1_000_000,
      maxDuration: 60_000,
    });
    if (ask === 'reserve') expect(await reserve(tenant, { input: 0, output: 16 })).toMatchObject({ output: 16 });
    if (ask === 'upkeep') await quota.upkeep(lookAtOnce(database.db));
    if (ask === 'state') await quota.state(tenant);
    const { rows } = await database.pool.query(
      'select input_used, output_used, input_reserved, output_reserved from completion_quota where tenant = $1',
      [tenant],
    );
    const reserved = { input_reserved: 0, output_reserved: ask === 'reserve' ? 16 : 0 };
    expect(rows[0]).toEqual({ input_used: 0, output_used: 0, ...reserved });
    // What was given back may belong to another call now, so this one must not leave.
    expect(await reservation.send()).toBe(false);
    await reservation.settle(endedCall('unknown'));
    expect((await quota.state(tenant)).used).toEqual({ input: 0, output: 0 });
  }
});

test('a reservation that is sent outlives the short lease, and is sent once', async () => {
  const tenant = await newTenant();
  const reservation = await reserve(tenant, { input: 10, output: 20 }, { sends: false });
  if (typeof reservation !== 'object') throw new Error('not reserved');
  const [{ now }] = (await database.pool.query('select clock_timestamp()::text as now')).rows;
  expect([await reservation.send(), await reservation.send()]).toEqual([true, false]);
  // Beyond the longest call by what its answer may take to be stored.
  const { rows } = await database.pool.query(
    `select sent, expires_at >= $2::timestamptz + interval '90 s' as outlives from completion_reservation where tenant = $1`,
    [tenant, now],
  );
  expect(rows).toEqual([{ sent: true, outlives: true }]);
  await endLeases(tenant);
  expect(await quota.state(tenant)).toEqual({ used: { input: 10, output: 20 }, reserved: { input: 0, output: 0 } });
});

test('of many reservations that are sent while their leases end, each is either charged or not sent', async () => {
  const tenant = await newTenant();
  const amount = { input: 10, output: 20 };
  const reservations = await Promise.all(Array.from({ length: 60 }, () => reserve(tenant, amount, { sends: false })));
  const sending = reservations.map(
    async (reservation) => typeof reservation === 'object' && (await reservation.send()),
  );
  const ending = Array.from({ length: 5 }, async () => {
    // Waits for no row: five of these and the sends lock them in orders of their own.
    await database.pool.query(
      `update completion_reservation set expires_at = now() where (tenant, reservation) in (
         select tenant, reservation from completion_reservation
         where tenant = $1 and not sent and right(reservation::text, 1) < $2 for update skip locked)`,
      [tenant, '8'],
    );
    await quota.state(tenant);
  });
  const sent = (await Promise.all(sending)).filter(Boolean).length;
  await Promise.all(ending);
  await endLeases(tenant);
  expect(await quota.state(tenant)).toEqual({
    used: { input: sent * 10, output: sent * 20 },
    reserved: { input: 0, output: 0 },
  });
});

test('figures that come after the lease has ended correct what was charged', async () => {
  const tenant = await newTenant();
  const late = await reserve(tenant, { input: 10, output: 20 });
  await endLeases(tenant);
  expect(await quota.state(tenant)).toMatchObject({
    used: { input: 10, output: 20 },
    reserved: { input: 0, output: 0 },
  });
  expect(await wrongSums(database.pool, tenant)).toEqual([]);
  if (typeof late === 'object') await late.settle(endedCall({ inputTokens: 3, outputTokens: 25 }));
  expect(await wrongSums(database.pool, tenant)).toEqual([]);
  expect(await quota.state(tenant)).toMatchObject({
    used: { input: 3, output: 25 },
    reserved: { input: 0, output: 0 },
  });
});

test('settling twice counts once', async () => {
  const tenant = await newTenant();
  const reservation = await reserve(tenant, { input: 10, output: 20 });
  if (typeof reservation !== 'object') throw new Error('not reserved');
  await reservation.settle(endedCall({ inputTokens: 3, outputTokens: 4 }));
  await reservation.settle(endedCall('unknown'));
  expect((await quota.state(tenant)).used).toEqual({ input: 3, output: 4 });
});

test('a reservation whose answer was lost on the way back is given back', async () => {
  const tenant = await newTenant();
  const losing = new Quota({ pool: losingAnswer(), db: database.db, logger: createLogger('silent') });
  await expect(
    reserveTokens(losing, { tenant, call: callStart(), input: 10, output: 20, maxDuration: 60_000 }),
  ).rejects.toThrow('connection lost');
  await losing.close();
  const { rows } = await database.pool.query('select reservation from completion_reservation where tenant = $1', [
    tenant,
  ]);
  expect(rows).toEqual([]);
  expect(await quota.state(tenant)).toEqual({ used: { input: 0, output: 0 }, reserved: { input: 0, output: 0 } });
});

test('a missing figure is charged as reserved, and the other as reported', async () => {
  const tenant = await newTenant();
  const reservation = await reserve(tenant, { input: 10, output: 20 });
  if (typeof reservation === 'object') await reservation.settle(endedCall({ inputTokens: undefined, outputTokens: 4 }));
  expect((await quota.state(tenant)).used).toEqual({ input: 10, output: 4 });
});

test("what one tenant uses leaves another tenant's quota untouched", async () => {
  const [tenant, otherTenant] = [await newTenant(), await newTenant()];
  await reserve(tenant, { input: 1, output: 1_000_000 });
  expect(await quota.state(otherTenant)).toEqual({ used: { input: 0, output: 0 }, reserved: { input: 0, output: 0 } });
});

test('the input bound is bytes, 16 a message and 64, and counts tools, formats, images, calls and results', () => {
  expect(inputBound([{ role: 'user', content: 'é' }])).toEqual({ tokens: 2 + 16 + 64, images: 0 });
  expect(inputBound([])).toEqual({ tokens: 64, images: 0 });
  const call = { id: 'ab', name: 'cd', input: '{}' };
  expect(inputBound([{ role: 'assistant', content: 'x', toolCalls: [call] }])).toEqual({
    tokens: 1 + 16 + 6 + 16 + 64,
    images: 0,
  });
  expect(inputBound([{ role: 'tool', results: [{ id: 'ab', name: 'cd', output: 'efg' }] }])).toEqual({
    tokens: 7 + 16 + 64,
    images: 0,
  });
  const tool = { name: 'n', description: 'd', inputSchema: {} };
  expect(inputBound([], [tool])).toEqual({ tokens: JSON.stringify(tool).length + 16 + 64, images: 0 });
  const format = { schema: { type: 'object' }, name: 'f' };
  expect(inputBound([], [], format)).toEqual({ tokens: JSON.stringify(format).length + 16 + 64, images: 0 });
  const image = { type: 'image', mediaType: 'image/png', data: 'AAAA' } as const;
  expect(inputBound([{ role: 'user', content: [{ type: 'text', text: 'é' }, image] }])).toEqual({
    tokens: 2 + 16 + 64,
    images: 1,
  });
});

/** The test's pool, and how many statements were answered. */
function countingPool(): { pool: TestDatabase['pool']; answered: () => number } {
  let statements = 0;
  const pool = new Proxy(database.pool, {
    get(target, name) {
      if (name !== 'query') return Reflect.get(target, name, target);
      return async (statement: QueryConfig) => {
        const result = await target.query(statement);
        statements += 1;
        return result;
      };
    },
  });
  return { pool, answered: () => statements };
}

/** The test's pool, on which one statement runs, of which the answer does not arrive. */
function losingAnswer(statementLost = 1): TestDatabase['pool'] {
  let statements = 0;
  return new Proxy(database.pool, {
    get(pool, name) {
      if (name !== 'query') return Reflect.get(pool, name, pool);
      return async (statement: QueryConfig) => {
        statements += 1;
        const result = await pool.query(statement);
        if (statements !== statementLost) return result;
        throw new Error('connection lost');
      };
    },
  });
}

async function newTenant(): Promise<string> {
  tenants += 1;
  await createTenant(database.db, `quota${tenants}`);
  return `quota${tenants}`;
}

let calls = 0;

/** With and without an agent, a user, a key's maker and a price, on two days. */
function variedCall(): CallStart {
  calls += 1;
  const tiers = [{ above: -1, input: 3, cachedInput: 1, cacheWrites: 4, output: 7 }];
  return callStart({
    at: Date.now() - (calls % 3 === 0 ? 86_400_000 : 0),
    model: `m${calls % 2}`,
    ...(calls % 4 !== 0 && { price: { tiers } }),
    ...(calls % 2 === 0 && { agentId: 'a' }),
    ...(calls % 5 !== 0 && { user: `u${calls % 7}`, makers: ['maker', 'inner'] }),
  });
}

/** The reservation, or the type of the error. */
async function reserve(
  tenant: string,
  { input, output }: { input: number; output: number },
  { sends = true, isLeaving = false } = {},
): Promise<Reservation | string> {
  const call = variedCall();
  try {
    if (isLeaving) {
      const leaving = leavingOf(tenant, { input, output, call });
      if ((await leaving?.send()) === true) return leaving ?? '';
    }
    const reservation = await reserveTokens(quota, { tenant, call, input, output, maxDuration: 60_000 });
    if (sends) expect(await reservation.send()).toBe(true);
    return reservation;
  } catch (error) {
    if (error instanceof AnnalsError) return error.type;
    throw error;
  }
}

/** What reserves when its call leaves; undefined where the call has to reserve before. */
function leavingOf(
  tenant: string,
  { input, output, call = variedCall() }: { input: number; output: number; call?: CallStart },
) {
  return quota.reserveOnSend({ tenant, call, input: { tokens: input, images: 0 }, output, maxDuration: 60_000 });
}

async function end(tenant: string, reservation: Reservation, how: End, input: number) {
  const whole = { input, output: reservation.output };
  if (how === 'dead' || how === 'dead before it was sent') {
    await endLeases(tenant);
    await quota.state(tenant);
    return how === 'dead' ? whole : { input: 0, output: 0 };
  }
  if (how === 'none' || how === 'unknown') {
    await reservation.settle(endedCall(how));
    return how === 'none' ? { input: 0, output: 0 } : whole;
  }
  const tokens = { input: Math.floor(how.input * input), output: Math.floor(how.output * reservation.output) };
  await reservation.settle(endedCall({ inputTokens: tokens.input, outputTokens: tokens.output }));
  return tokens;
}

async function endLeases(tenant: string): Promise<void> {
  await database.pool.query('update completion_reservation set expires_at = now() where tenant = $1', [tenant]);
}

async function stateColumns(tenant: string) {
  const { used } = await quota.state(tenant);
  return { input_used: used.input, output_used: used.output };
}
