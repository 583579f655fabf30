import { randomBytes } from 'node:crypto';
import { createFindPage, type FindPage } from '../../../src/history/search/find-page.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

/** A database with one tenant, and functions that query its history, below HTTP. */
export interface TestHistory {
  database: TestDatabase;
  regexes: RegexMatcherPool;
  findPage: FindPage;
  close(): Promise<void>;
}

/** `now` is in milliseconds since 1970. To be closed in afterAll. */
export async function openTestHistory(
  tenant: string,
  now: () => number,
  create = createTestDatabase,
): Promise<TestHistory> {
  const database = await create();
  await createTenant(database.db, tenant);
  const regexes = new RegexMatcherPool();
  return {
    database,
    regexes,
    findPage: createFindPage({ pool: database.pool, db: database.db, regexes, now }),
    async close() {
      await database.drop();
    },
  };
}

/** A change like others, with an identity of its own. */
export function changeOf(options: Partial<Change> & { at: number }): Change {
  return {
    identity: randomBytes(16),
    type: 'update',
    entity: 'order',
    entityId: '1',
    actor: 'Jane Doe',
    related: [],
    paths: '{}',
    ...options,
  };
}
