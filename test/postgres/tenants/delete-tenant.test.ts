import { afterAll, beforeAll, expect, test } from 'vitest';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

test('a row that is written behind the deletion, and refers to one that is to go, goes as well', async () => {
  const { pool, db } = database;
  await createTenant(db, 'acme');
  await pool.query(`
    insert into custom_entity (tenant, id, version, document, fields) values ('acme', 'THING', 1, '{}', '{}');
    insert into custom_instance (tenant, type, id, version, document, fields) values ('acme', 'THING', 'b', 1, '{}', '{}');
    create function write_behind() returns trigger language plpgsql as $$
    begin
      insert into custom_instance (tenant, type, id, version, document, fields)
        select tenant, type, 'a', version, document, fields from deleted where id = 'b';
      return null;
    end $$;
    create trigger write_behind after delete on custom_instance referencing old table as deleted
      for each statement execute function write_behind();`);
  expect(await deleteTenant(db, 'acme')).toBeGreaterThan(2);
  const { rows } = await pool.query("select from custom_instance where tenant = 'acme'");
  expect(rows).toEqual([]);
  expect(await deleteTenant(db, 'acme')).toBe(0);
});
