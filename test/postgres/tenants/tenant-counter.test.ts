import { afterEach, expect, test } from 'vitest';
import { OutcomeUnknown, TenantCounter } from '../../../src/postgres/tenants/tenant-counter.ts';

interface Count {
  tenant: string;
  day: number;
  amount: number;
}

let failure: Error | undefined;
const stored: Count[] = [];
const errors: unknown[] = [];
const counters: TenantCounter<Count>[] = [];

function newCounter(): TenantCounter<Count> {
  stored.length = 0;
  errors.length = 0;
  failure = undefined;
  const counter = new TenantCounter<Count>({
    keyOf: ({ tenant, day }) => `${tenant} ${day}`,
    sum: (earlier, later) => ({ ...later, amount: earlier.amount + later.amount }),
    add: async (counted) => {
      if (failure !== undefined) throw failure;
      stored.push(...counted.map((part) => ({ ...part })));
    },
    onError: (error) => errors.push(error),
    every: 1_000_000,
  });
  counters.push(counter);
  return counter;
}

afterEach(async () => {
  for (const counter of counters.splice(0)) await counter.close();
});

test('many requests are one count of a tenant and a day', async () => {
  const counter = newCounter();
  for (let request = 0; request < 1_000; request += 1) counter.count(once(request % 4 === 0 ? 'alpha' : 'beta'));
  counter.count(once('alpha', 1));
  await counter.store();
  expect(stored).toEqual([
    { tenant: 'alpha', day: 0, amount: 250 },
    { tenant: 'beta', day: 0, amount: 750 },
    { tenant: 'alpha', day: 1, amount: 1 },
  ]);
  await counter.store();
  expect(stored).toHaveLength(3);
});

test('what the database refused is stored the next time, with what came since', async () => {
  const counter = newCounter();
  counter.count(once('alpha'));
  failure = new Error('the database is away');
  await counter.store();
  counter.count(once('alpha'));
  failure = undefined;
  await counter.store();
  expect(stored).toEqual([{ tenant: 'alpha', day: 0, amount: 2 }]);
  expect(errors).toHaveLength(1);
});

test('what may have been stored is not stored again', async () => {
  const counter = newCounter();
  counter.count(once('alpha'));
  failure = new OutcomeUnknown('the connection was lost');
  await counter.store();
  failure = undefined;
  await counter.close();
  expect(stored).toEqual([]);
  expect(errors).toHaveLength(1);
});

test('a close stores what was counted while a round was under way', async () => {
  const counter = newCounter();
  counter.count(once('alpha'));
  const round = counter.store();
  counter.count(once('beta'));
  await counter.close();
  await round;
  expect(stored.map(({ tenant }) => tenant)).toEqual(['alpha', 'beta']);
});

function once(tenant: string, day = 0): Count {
  return { tenant, day, amount: 1 };
}
