import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { createSingleTestDatabase } from '../support/server/database.ts';

const database = closeAfterAll(await createSingleTestDatabase());
test('every primary key of a table of tenants begins with the tenant', async () => {
  const { rows } = await database.pool.query(`
    select c.relname as name
      from pg_class c
      join pg_attribute t on t.attrelid = c.oid and t.attname = 'tenant'
      left join pg_index i on i.indrelid = c.oid and i.indisprimary
      where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and i.indkey[0] is distinct from t.attnum`);
  expect(rows).toEqual([]);
});
