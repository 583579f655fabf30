import type pg from 'pg';
import { expect, test } from 'vitest';
import { writeRecords } from '../../../src/desk/completions/quota-store.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const database = closeAfterAll(await createTestDatabase());

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

test('the record of a call that ends during it goes as well, and one of a later call is not written', async () => {
  const { pool, db } = database;
  await createTenant(db, 'acme');
  const call = { at: new Date(), operation: 'openai', token: 'own', provider: 'openai', model: 'm', client: 'c' };
  const write = async (to: pg.Pool | pg.PoolClient, ...ids: string[]) => {
    const records = ids.map((id) => ({ ...call, id }));
    await writeRecords(to, 'acme', records);
  };
  const client = await pool.connect();
  await client.query('begin');
  await write(client, 'a');
  await write(client, 'b', 'c');
  const deleted = deleteTenant(db, 'acme');
  await expect.poll(async () => (await pool.query("select from tenant where tenant = 'acme'")).rows).toEqual([]);
  await client.query('commit');
  client.release();
  await deleted;
  await write(pool, 'd');
  await write(pool, 'e', 'f');
  expect((await pool.query('select from call_record')).rows).toEqual([]);
});
