import { expect, test } from 'vitest';
import { type Release, Semaphore } from '../../../src/core/fairness/semaphore.ts';
import { Stop } from '../../../src/core/stop-signal.ts';

/** Takes all places that the tenant gets without waiting. */
function takeAll(semaphore: Semaphore, tenant: string): Release[] {
  const places: Release[] = [];
  for (let place = semaphore.tryAcquire(tenant); place !== undefined; place = semaphore.tryAcquire(tenant)) {
    places.push(place);
  }
  return places;
}

/** Callers that wait, and the order in which they get their places. */
function queueOf(semaphore: Semaphore) {
  const begun: string[] = [];
  const releases = new Map<string, Release>();
  const join = async (name: string, signal?: Stop) => {
    releases.set(name, await semaphore.acquire(name.slice(0, 1), signal));
    begun.push(name);
  };
  return { begun, releases, join };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test.each([
  { places: 2, share: 1 },
  { places: 3, share: 1 },
  { places: 8, share: 4 },
  { places: 12, share: 6 },
])('a tenant alone gets half of $places places, and not one more', ({ places, share }) => {
  const semaphore = new Semaphore({ places });
  expect(takeAll(semaphore, 'acme')).toHaveLength(share);
  expect(semaphore.taken('acme')).toBe(share);
});

test('a lower limit for a tenant holds', () => {
  const semaphore = new Semaphore({ places: 100, maxOfTenant: 32 });
  expect(takeAll(semaphore, 'acme')).toHaveLength(32);
  expect(takeAll(semaphore, 'rival')).toHaveLength(32);
});

test('without a number of places only the share of a tenant limits it', () => {
  const semaphore = new Semaphore({ maxOfTenant: 64 });
  for (const tenant of ['acme', 'rival', 'third']) expect(takeAll(semaphore, tenant)).toHaveLength(64);
});

test('tenants that take all they can get leave a place for the next one', () => {
  const semaphore = new Semaphore({ places: 12 });
  for (const tenant of ['a', 'b', 'c']) takeAll(semaphore, tenant);
  expect(semaphore.tryAcquire('bystander')).toBeDefined();
});

test('tenants that keep wanting more end with equal shares, and as much stays free', async () => {
  const semaphore = new Semaphore({ places: 12 });
  const releases = new Map(['a', 'b', 'c'].map((tenant) => [tenant, takeAll(semaphore, tenant)]));
  const waitFor = (tenant: string) => {
    void semaphore.acquire(tenant).then((release) => releases.get(tenant)?.push(release));
  };
  for (const tenant of releases.keys()) for (let index = 0; index < 50; index++) waitFor(tenant);
  for (let round = 0; round < 20; round++) {
    for (const places of releases.values()) places.shift()?.();
    await settled();
  }
  expect(['a', 'b', 'c'].map((tenant) => semaphore.taken(tenant))).toEqual([3, 3, 3]);
  expect(semaphore.tryAcquire('bystander')).toBeDefined();
});

test('callers that wait get their turn tenant by tenant, and those of one tenant in the order they came', async () => {
  const semaphore = new Semaphore({ places: 2 });
  const blocker = semaphore.tryAcquire('x');
  const second = semaphore.tryAcquire('y');
  const { begun, releases, join } = queueOf(semaphore);
  const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => join(name));
  blocker?.();
  for (let round = 0; round < 6; round++) {
    await settled();
    releases.get(begun.at(-1) ?? '')?.();
  }
  await Promise.all(all);
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  second?.();
  expect([semaphore.taken(), semaphore.waiting()]).toEqual([0, 0]);
});

test('a caller that gives up loses its turn and keeps no other waiting', async () => {
  const semaphore = new Semaphore({ places: 2 });
  const blocker = semaphore.tryAcquire('a');
  const { begun, releases, join } = queueOf(semaphore);
  const stop = new Stop();
  const left = join('a1', stop);
  const right = join('a2');
  stop.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  expect(semaphore.waiting('a')).toBe(1);
  blocker?.();
  await right;
  expect(begun).toEqual(['a2']);
  releases.get('a2')?.();
  expect(semaphore.taken()).toBe(0);
});

test('a caller whose signal is aborted already gets no place', async () => {
  const semaphore = new Semaphore({ places: 2 });
  const stop = new Stop();
  stop.abort(new Error('gone'));
  await expect(semaphore.acquire('acme', stop)).rejects.toThrow('gone');
  expect(semaphore.taken()).toBe(0);
});

test('so many callers of a tenant wait, one more is refused with the limit and when to come again', async () => {
  const semaphore = new Semaphore({ places: 2, maxWaitingOfTenant: 2, name: 'event streams' });
  const release = semaphore.tryAcquire('acme');
  const waiting = [semaphore.acquire('acme'), semaphore.acquire('acme')];
  await expect(semaphore.acquire('acme')).rejects.toMatchObject({
    type: 'rate_limit_exceeded',
    message: expect.stringContaining('event streams: at most 1 at once, and at most 2 that wait'),
    headers: { 'Retry-After': '1' },
  });
  expect(semaphore.tryAcquire('rival')).toBeDefined();
  release?.();
  (await waiting[0])?.();
  (await waiting[1])?.();
  expect(semaphore.waiting()).toBe(0);
});

test('a place is released once, however often its release is called', () => {
  const semaphore = new Semaphore({ places: 4 });
  const [first] = takeAll(semaphore, 'acme');
  first?.();
  first?.();
  expect(semaphore.taken('acme')).toBe(1);
});

test('work that throws gives its place back', async () => {
  const semaphore = new Semaphore({ places: 2 });
  const work = () => Promise.reject(new Error('it failed'));
  await expect(semaphore.use('acme', undefined, work)).rejects.toThrow('it failed');
  expect(semaphore.taken()).toBe(0);
});

test('several places at once count as that many, and the rule for tenants holds for them too', () => {
  const semaphore = new Semaphore({ places: 100 });
  expect(semaphore.tryAcquire('acme', 51)).toBeUndefined();
  const release = semaphore.tryAcquire('acme', 50);
  expect(release).toBeDefined();
  expect(semaphore.tryAcquire('acme', 1)).toBeUndefined();
  expect(semaphore.tryAcquire('rival', 20)).toBeDefined();
  // 30 are free: with 5 more the rival would have 25, and 25 would stay free.
  expect(semaphore.tryAcquire('rival', 6)).toBeUndefined();
  expect(semaphore.tryAcquire('rival', 5)).toBeDefined();
  release?.();
  expect(semaphore.taken('acme')).toBe(0);
});

test('places that come back serve all who wait and fit, in their order', async () => {
  const semaphore = new Semaphore({ places: 100 });
  const release = semaphore.tryAcquire('acme', 50);
  const served: number[] = [];
  for (const places of [10, 20, 5]) void semaphore.acquire('acme', undefined, places).then(() => served.push(places));
  release?.();
  await settled();
  expect(served).toEqual([10, 20, 5]);
});

test('a tenant whose turn ends comes after those that have waited since', async () => {
  const semaphore = new Semaphore({ places: 1 });
  const { begun, releases, join } = queueOf(semaphore);
  for (const name of ['a1', 'a2', 'b1', 'c1']) void join(name);
  for (const name of ['a1', 'b1', 'c1', 'a2']) {
    await settled();
    releases.get(name)?.();
  }
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2']);
});
