import { expect, onTestFinished, test } from 'vitest';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { removeOutbox } from '../../../src/sources/outbox/outbox-schema.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { useHistory } from '../history.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

const tables = { 'public.orders': { entity: 'order' } };
const sql = outboxSql(readMapping(JSON.stringify({ version: 1, tenant: { value: 'acme' }, tables })));

/**
 * An application with an outbox, and an unrelated role. `run` runs SQL as the superuser and rolls back what failed.
 */
async function application() {
  const made = await createApplication(openHistory(), 'create table orders (id int primary key, title text)', tables);
  const role = `mallory_${Math.random().toString(36).slice(2)}`;
  await made.pool.query(`create role ${role}`);
  onTestFinished(async () => {
    await made.pool.query(`drop owned by ${role} cascade; drop role ${role}`);
  });
  const run = async (text: string) => {
    const client = await made.pool.connect();
    try {
      await client.query(text);
    } finally {
      await client.query('rollback; reset role');
      client.release();
    }
  };
  return { ...made, role, run };
}

test('a schema with the right comment and a foreign owner is refused, and its owner sees no row', async () => {
  const { run, role, pool } = await application();
  await run(removeOutbox);
  await run(`create schema annals authorization ${role}; comment on schema annals is 'Annals outbox'; set role ${role};
    create table annals.outbox (lane smallint, number bigint generated always as identity, at timestamptz, transaction xid8, source text,
      before jsonb, after jsonb, document jsonb, actor text, context text, fault text)`);
  await expect(run(sql)).rejects.toThrow(`the schema annals belongs to ${role}`);
  await expect(run(sql)).rejects.toThrow(`the table annals.outbox belongs to ${role}`);
  await expect(run(removeOutbox)).rejects.toThrow(`the schema annals belongs to ${role}`);
  await run(`insert into orders values (1, 'one')`);
  expect((await pool.query('select from annals.outbox')).rowCount).toBe(0);
});

const foreignRights: [grant: string, fault: string][] = [
  ['grant create on schema annals to ROLE', 'ROLE has the right create on the schema annals'],
  ['grant select on annals.outbox to ROLE', 'ROLE has the right select on the table annals.outbox'],
  ['grant insert on annals.outbox to public', 'public has the right insert on the table annals.outbox'],
  ['grant select (after) on annals.outbox to ROLE', 'ROLE has the right select on the column after of annals.outbox'],
  ['grant insert on annals.outbox to annals_relay', 'annals_relay has the right insert on the table annals.outbox'],
  [
    'grant execute on function annals.write_row() to ROLE',
    'ROLE has the right execute on the function annals.write_row',
  ],
  ['alter function annals.lane_of(text, text) owner to ROLE', 'the function annals.lane_of belongs to ROLE'],
  [
    'create view annals.copies as select 1; alter view annals.copies owner to ROLE',
    'the table annals.copies belongs to ROLE',
  ],
  [
    'create trigger sees after insert on annals.outbox for each row execute function annals.write_row()',
    'the trigger sees is on annals.outbox',
  ],
  ['create rule sees as on insert to annals.outbox do also select 1', 'the rule sees is on annals.outbox'],
];

test.each(foreignRights)(
  'a schema of ours with a foreign right is refused by the SQL and the relay: %s',
  async (grant, fault) => {
    const made = await application();
    const { run, role } = made;
    await run(grant.replaceAll('ROLE', role));
    const message = fault.replaceAll('ROLE', role);
    await expect(run(sql)).rejects.toThrow(message);
    await expect(startRelay(made).ended).rejects.toThrow(message);
  },
);

test('rights that the SQL would give away by default privileges are refused, and nothing is made', async () => {
  const { run, role, pool } = await application();
  await run(removeOutbox);
  await run(`alter default privileges for role annals_outbox grant select on tables to ${role}`);
  onTestFinished(async () => {
    await pool.query(`alter default privileges for role annals_outbox revoke select on tables from ${role}`);
  });
  await expect(run(sql)).rejects.toThrow(`${role} has the right select on the table annals.outbox`);
  expect((await pool.query(`select from pg_namespace where nspname = 'annals'`)).rowCount).toBe(0);
});

test('another member of the role that owns the outbox is refused', async () => {
  const { run, role } = await application();
  // Never committed: roles belong to the server, where other tests create outboxes at the same time.
  await expect(run(`begin; grant annals_outbox to ${role}; ${sql}`)).rejects.toThrow(
    `${role} is a member of annals_outbox`,
  );
});

test('what an operator may grant stays, and the SQL runs again', async () => {
  const { run, role } = await application();
  await run(`grant usage on schema annals to ${role}; grant annals_relay to ${role}`);
  await run(`grant execute on function annals.record(text, text, jsonb, jsonb, text, text) to ${role}`);
  await run(sql);
  await run(removeOutbox);
  await run(sql);
});
