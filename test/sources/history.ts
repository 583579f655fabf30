import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';

export const tenant = 'acme';

/**
 * A database of Annals that the tests of a file use one after the other. Each test finds it empty, but for the tenant.
 * To be called at the top of the file; a test then calls what it returns, once.
 */
export function useHistory(): () => TestDatabase {
  let history: TestDatabase;
  beforeAll(async () => {
    history = await createTestDatabase();
    await createTenant(history.db, tenant);
  });
  afterAll(() => history.drop());
  return () => {
    onTestFinished(() => emptyHistory(history));
    return history;
  };
}

async function emptyHistory({ pool }: TestDatabase): Promise<void> {
  await pool.query(
    `do $$ declare found text; begin
       for found in select tablename from pg_tables
         where schemaname = current_schema() and (tablename like 'change\\_%' or tablename like 'capture\\_%')
       loop execute format('delete from %I', found); end loop;
     end $$`,
  );
}
