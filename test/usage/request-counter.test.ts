import { afterEach, expect, test } from 'vitest';
import { RequestCounter } from '../../src/usage/request-counter.ts';
import { type CountedRequests, OutcomeUnknown } from '../../src/usage/usage-store.ts';

let failure: Error | undefined;
let now = 0;
const stored: CountedRequests[] = [];
const errors: unknown[] = [];
const counters: RequestCounter[] = [];

function newCounter(): RequestCounter {
  stored.length = 0;
  errors.length = 0;
  failure = undefined;
  now = 0;
  const counter = new RequestCounter({
    add: async (counted) => {
      if (failure !== undefined) throw failure;
      stored.push(...counted.map((part) => ({ ...part })));
    },
    now: () => now,
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
  for (let request = 0; request < 1_000; request += 1) counter.count(request % 4 === 0 ? 'alpha' : 'beta');
  now = 86_400_000;
  counter.count('alpha');
  await counter.store();
  expect(stored).toEqual([
    { tenant: 'alpha', day: 0, requests: 250 },
    { tenant: 'beta', day: 0, requests: 750 },
    { tenant: 'alpha', day: 1, requests: 1 },
  ]);
  await counter.store();
  expect(stored).toHaveLength(3);
});

test('what the database refused is stored the next time, with what came since', async () => {
  const counter = newCounter();
  counter.count('alpha');
  failure = new Error('the database is away');
  await counter.store();
  counter.count('alpha');
  failure = undefined;
  await counter.store();
  expect(stored).toEqual([{ tenant: 'alpha', day: 0, requests: 2 }]);
  expect(errors).toHaveLength(1);
});

test('what may have been stored is not stored again', async () => {
  const counter = newCounter();
  counter.count('alpha');
  failure = new OutcomeUnknown('the connection was lost');
  await counter.store();
  failure = undefined;
  await counter.close();
  expect(stored).toEqual([]);
  expect(errors).toHaveLength(1);
});

test('a close stores what was counted while a round was under way', async () => {
  const counter = newCounter();
  counter.count('alpha');
  const round = counter.store();
  counter.count('beta');
  await counter.close();
  await round;
  expect(stored.map(({ tenant }) => tenant)).toEqual(['alpha', 'beta']);
});
