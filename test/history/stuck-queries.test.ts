import { randomBytes } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { doWork } from '../../src/core/fairness/work.ts';
import { createFindPage, type FindPage } from '../../src/history/search/find-page.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { createTenantPool } from '../../src/postgres/connections/tenant-pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { createTestDatabase } from '../support/server/database.ts';
import { lockTables } from '../support/server/locked-tables.ts';
import { eventually, letOthersWork } from '../support/server/patience.ts';
import { statementsWaiting } from '../support/server/statements-waiting.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const applicationName = 'stuck queries';
/** One query per plan: tallies, one document, several statements. */
const queries = ['', 'actor:Jane*', 'entity:order entityId:1', 'entity:order entityId:~^1', 'entity:order entityId:1*'];

const database = await createTestDatabase();
const regexes = new RegexMatcherPool();
const pool = createTenantPool(database.url, { applicationName });
await createTenant(database.db, tenant);
await createTenant(database.db, 'other');
const change = { type: 'update', entity: 'order', entityId: '1', actor: 'Jane', related: [], paths: '{}' } as const;
await createRecorder(database.db, tenant, () => now)([{ ...change, identity: randomBytes(16), at: now - 1 }]);

afterAll(async () => {
  await pool.end();
  await database.drop();
});

function finder(): FindPage {
  return createFindPage({ pool, db: createDatabase(pool), regexes, now: () => now });
}

async function ask(
  find: FindPage,
  q: string,
  limits: { signal?: AbortSignal; timeLimit?: number },
  of = tenant,
): Promise<number> {
  const page = () => find(of, parseQuery(q, changelogDialect), { skip: 0, size: 20 });
  return (await doWork({ tenant: of, ...limits }, page)).total;
}

/** Connections in use. */
function inUse(): number {
  return pool.pools.reduce((sum, { totalCount, idleCount }) => sum + totalCount - idleCount, 0);
}

/** Running statements and open transactions of the service. */
async function busy(): Promise<number> {
  const { rows } = await database.pool.query<{ busy: number }>(
    "select count(*) as busy from pg_stat_activity where application_name = $1 and state <> 'idle'",
    [applicationName],
  );
  return rows[0]?.busy ?? 0;
}

const stuck = async () => (await statementsWaiting(database)).length;

describe('while statements are blocked', () => {
  beforeEach(async () => (await lockTables(database, ['change_entry'])).release);

  test.each(queries)('a disconnected client leaves no statement or connection behind: %s', async (q) => {
    const gone = new AbortController();
    const find = finder();
    const calls = Array.from({ length: 12 }, () => ask(find, q, { signal: gone.signal }));
    const outcomes = Promise.allSettled(calls);
    await eventually(busy).toBeGreaterThan(0);
    gone.abort(new Error('the client has gone'));
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { message: 'the client has gone' } });
    }
    await eventually(busy).toBe(0);
    await eventually(inUse).toBe(0);
  });

  test.each(queries)('a query that times out is a 503, and its connection is released: %s', async (q) => {
    const find = finder();
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => ask(find, q, { timeLimit: 500 })));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        status: 'rejected',
        reason: { type: 'service_unavailable', message: expect.stringContaining('not answered within 1 second.') },
      });
    }
    await eventually(busy).toBe(0);
    await eventually(inUse).toBe(0);
  });

  test('slow queries leave connections to other work', async () => {
    const gone = new AbortController();
    const find = finder();
    const calls = Array.from({ length: 30 }, () => ask(find, 'entity:order entityId:1*', { signal: gone.signal }));
    const outcomes = Promise.allSettled(calls);
    await eventually(busy).toBeGreaterThan(0);
    const bystander = () => pool.query({ text: 'select 1 as answer' });
    expect((await doWork({ tenant: 'bystander' }, bystander)).rows).toEqual([{ answer: 1 }]);
    gone.abort();
    await outcomes;
  });

  test('slow queries of one tenant leave slots to another tenant', async () => {
    const gone = new AbortController();
    const find = finder();
    const calls = Array.from({ length: 30 }, () => ask(find, 'entity:order entityId:1*', { signal: gone.signal }));
    const outcomes = Promise.allSettled(calls);
    await eventually(stuck).toBeGreaterThan(0);
    // Until it has all the slots it gets: on a slow machine they fill one by one.
    let ofOne = 0;
    for (let looks = 0; looks < 3; await letOthersWork(150)) {
      const before = ofOne;
      ofOne = await stuck();
      looks = ofOne === before ? looks + 1 : 0;
    }
    const ofAnother = ask(find, 'entity:order entityId:1*', { signal: gone.signal }, 'other');
    const otherOutcome = Promise.allSettled([ofAnother]);
    await eventually(stuck).toBe(ofOne + 1);
    gone.abort();
    await Promise.all([outcomes, otherOutcome]);
  });
});
