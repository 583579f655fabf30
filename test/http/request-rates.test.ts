import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { afterEach, describe, expect, test } from 'vitest';
import { createKey } from '../../src/access/keys/key-store.ts';
import { AnnalsError } from '../../src/core/errors.ts';
import { createTakePortion, RequestRates, type TakePortion } from '../../src/http/request-rates.ts';
import type { Database } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createTestDatabaseForThisTest } from '../support/server/database.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';
import { statementsWaiting } from '../support/server/statements-waiting.ts';

/** A bucket in memory that does what the one in the database does. */
function memoryBucket(rate: number, elapsed: () => number): TakePortion {
  const capacity = Math.max(1, rate * 0.9);
  let tokens = capacity;
  let refilledAt = elapsed();
  return async (_of, portion) => {
    tokens = Math.min(capacity, tokens + (rate * (elapsed() - refilledAt)) / 1000);
    refilledAt = elapsed();
    const granted = Math.min(portion, Math.floor(tokens));
    const seconds = granted > 0 ? 0 : (1 - tokens) / rate;
    tokens -= granted;
    return { granted, seconds };
  };
}

/** 'passed', or the seconds of Retry-After. */
async function ask(rates: RequestRates, tenant = 'acme'): Promise<string> {
  try {
    for (const rate of rates.of({ tenant, clientId: 'c', rate: undefined })) await rates.admit(rate);
    return 'passed';
  } catch (error) {
    return error instanceof AnnalsError ? (error.headers['Retry-After'] ?? '') : 'failed';
  }
}

describe('a rate', () => {
  test.each([1, 7, 100, 2_000])(
    'of %i a second lets at most 110 % pass in any 10 seconds, of two processes',
    async (perSecond) => {
      let elapsed = 0;
      const take = memoryBucket(perSecond, () => elapsed);
      const newProcess = () =>
        new RequestRates({ tenantRate: perSecond, take, elapsed: () => elapsed, onUnreachable: () => {} });
      const processes = [newProcess(), newProcess()];
      const passedAt: number[] = [];
      const step = Math.max(1, Math.floor(500 / perSecond));
      for (; elapsed < 25_000; elapsed += step) {
        // A pause, after which the bucket is full.
        if (elapsed > 3_000 && elapsed < 6_000) continue;
        for (const process of processes) {
          if ((await ask(process)) === 'passed') passedAt.push(elapsed);
        }
      }
      let first = 0;
      let maximum = 0;
      for (const [last, at] of passedAt.entries()) {
        while ((passedAt[first] ?? 0) < at - 10_000) first += 1;
        maximum = Math.max(maximum, last - first + 1);
      }
      expect(maximum).toBeLessThanOrEqual(perSecond * 11);
      // The limit is no lower than the rate, but for what a portion that was not used up loses.
      expect(maximum).toBeGreaterThanOrEqual(perSecond * 9.5);
    },
  );

  test('beyond it a request is refused, and other tenants are not', async () => {
    const take = memoryBucket(5, () => 0);
    const rate = new RequestRates({
      tenantRate: 5,
      take: (of, portion) => (of.tenant === 'acme' ? take(of, portion) : Promise.resolve({ granted: 1, seconds: 0 })),
      elapsed: () => 0,
      onUnreachable: () => {},
    });
    expect([await ask(rate), await ask(rate), await ask(rate), await ask(rate)]).toEqual(Array(4).fill('passed'));
    await expect(rate.admit({ tenant: 'acme', rate: 5 })).rejects.toMatchObject({
      type: 'rate_limit_exceeded',
      message: 'A tenant can send at most 5 requests a second.',
      headers: { 'Retry-After': '1' },
    });
    expect(await ask(rate, 'rival')).toBe('passed');
  });

  test('takes 100 ms worth ahead, however many requests come at once', async () => {
    const portions: number[] = [];
    const take = memoryBucket(100, () => 0);
    const rate = new RequestRates({
      tenantRate: 100,
      take: (of, portion) => {
        portions.push(portion);
        return take(of, portion);
      },
      elapsed: () => 0,
      onUnreachable: () => {},
    });
    const results = await Promise.all(Array.from({ length: 200 }, () => ask(rate)));
    expect(results.filter((result) => result === 'passed')).toHaveLength(90);
    expect(portions).toEqual(Array(10).fill(10));
  });

  test('continues with the last portion while the database is away', async () => {
    let elapsed = 0;
    let isAway = false;
    const take = memoryBucket(50, () => elapsed);
    let failures = 0;
    const rate = new RequestRates({
      tenantRate: 50,
      take: async (of, portion) => {
        if (isAway) throw new Error('no database');
        return await take(of, portion);
      },
      elapsed: () => elapsed,
      onUnreachable: () => {
        failures += 1;
      },
    });
    await ask(rate);
    isAway = true;
    let passed = 0;
    for (elapsed = 200; elapsed < 2_200; elapsed += 2) if ((await ask(rate)) === 'passed') passed += 1;
    expect(passed).toBeGreaterThanOrEqual(90);
    expect(passed).toBeLessThanOrEqual(105);
    expect(failures).toBeLessThanOrEqual(3);
    isAway = false;
    elapsed += 1_000;
    expect(await ask(rate)).toBe('passed');
  });
});

describe('over HTTP', () => {
  const servers: TestServer[] = [];
  afterEach(async () => {
    for (const server of servers.splice(0).reverse()) await server.close();
  });

  test('two processes let one rate pass together; health and other tenants are not counted', async () => {
    const environment = { ANNALS_TENANT_RATE: '20' };
    const first = await startTestServer({ environment });
    servers.push(first);
    const second = await startTestServer({ environment, database: first.database });
    servers.push(second);
    const token = await first.token('acme');
    const rival = await first.token('rival');
    const call = (server: TestServer, of: string, as: string) =>
      server.call(`/configuration/${of}/configurations`, { token: as });
    const begun = performance.now();
    let passed = 0;
    let refused = 0;
    while (performance.now() - begun < 1_500 || refused === 0 || passed <= 20) {
      const answers = await Promise.all([first, second].map((server) => call(server, 'acme', token)));
      for (const { status, headers } of answers) {
        if (status === 200) passed += 1;
        else {
          expect(status).toBe(429);
          expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
          refused += 1;
        }
      }
      await sleep(10);
    }
    const seconds = (performance.now() - begun) / 1000;
    // A full bucket, and what came back since.
    expect(passed).toBeLessThanOrEqual(20 * (seconds + 1));
    expect(passed).toBeGreaterThan(20);
    expect(refused).toBeGreaterThan(0);
    expect((await call(second, 'rival', rival)).status).toBe(200);
    expect((await first.call('/health/live')).status).toBe(200);
  });

  test('what another process takes at the same time is waited for and counted', async () => {
    const database = await createTestDatabaseForThisTest();
    await createTenant(database.db, 'acme');
    const take = async (db: Database, portion: number) =>
      (await sql<{ granted: number }>`select granted from tenant_rate_take('acme', '', 0.001, ${portion})`.execute(db))
        .rows[0];
    expect(await take(database.db, 0)).toEqual({ granted: 0 });
    const { second } = await database.db.transaction().execute(async (first) => {
      expect(await take(first, 1)).toEqual({ granted: 1 });
      const waiting = take(database.db, 1);
      await eventually(() => statementsWaiting(database)).toHaveLength(1);
      return { second: waiting };
    });
    expect(await second).toEqual({ granted: 0 });
  });

  test('the requests of viewers are counted too', async () => {
    const server = await startTestServer({ environment: { ANNALS_TENANT_RATE: '1' } });
    servers.push(server);
    const [token, rival] = [await server.viewerToken('acme'), await server.viewerToken('rival')];
    const look = (tenant: string, as: string) => server.call(`/viewer/${tenant}/changes`, { token: as });
    const refusals = async () => {
      const answers = await Promise.all([1, 2, 3].map(() => look('acme', token)));
      return await Promise.all(answers.filter(({ status }) => status === 429).map((answer) => answer.text()));
    };
    await eventually(refusals).toContainEqual(expect.stringContaining('A tenant can send at most 1 request a second.'));
    // Each tenant has a rate of its own.
    await eventually(async () => (await look('rival', rival)).status).toBe(200);
  });

  test('a key has a rate of its own over all processes, beside which its tenant and other keys have theirs', async () => {
    const server = await startTestServer();
    servers.push(server);
    const second = await startTestServer({ database: server.database });
    servers.push(second);
    const token = await server.token('acme');
    const scopes = ['ai.completion_manage'];
    const { db } = server.database;
    const slow = await createKey(db, { tenant: 'acme', scopes, rate: 2 });
    const free = await createKey(db, { tenant: 'acme', scopes });
    expect([slow.rate, free.rate]).toEqual([2, undefined]);
    const models = (of: TestServer, as: string) => of.call('/openai/acme/v1/models', { token: as });
    const begun = performance.now();
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, place) => models(place % 2 === 0 ? server : second, slow.key)),
    );
    const seconds = (performance.now() - begun) / 1_000;
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.length - refused.length).toBeGreaterThan(0);
    expect(answers.length - refused.length).toBeLessThanOrEqual(2 * (seconds + 1));
    const [refusal] = refused;
    expect(Number(refusal?.headers.get('retry-after'))).toBeGreaterThan(0);
    const message = 'This key can send at most 2 requests a second.';
    expect(await refusal?.json()).toMatchObject({ error: { message, code: 'rate_limit_exceeded' } });
    for (const as of [token, free.key]) expect((await models(server, as)).status).toBe(200);
    await eventually(async () => (await models(server, slow.key)).status).toBe(200);
  });

  test('the bucket in the database gives what it has, and tells when there is more', async () => {
    const server = await startTestServer();
    servers.push(server);
    await server.createTenant('acme');
    const ofTenant = createTakePortion(server.context.db);
    const take = (tenant: string, portion: number) => ofTenant({ tenant, rate: 10 }, portion);
    expect(await take('acme', 4)).toEqual({ granted: 4, seconds: 0 });
    expect((await take('acme', 100)).granted).toBeGreaterThanOrEqual(5);
    const none = await take('acme', 100);
    if (none.granted === 0) {
      expect(none.seconds).toBeGreaterThan(0);
      expect(none.seconds).toBeLessThanOrEqual(0.1);
      await sleep(none.seconds * 1000 + 1);
      expect((await take('acme', 100)).granted).toBeGreaterThanOrEqual(1);
    }
  });
});
