import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { PrismaPg } from '@prisma/adapter-pg';
import pg from 'pg';
import { actAs, tellAuthor } from '../adapter/author.ts';
import { inTransaction } from '../adapter/prisma.ts';
import { PrismaClient } from './generated/client.ts';

// SOURCE_URL names a PostgreSQL with wal_level = logical.
const connectionString = process.env.SOURCE_URL;
const name = 'annals_example_prisma';
const pool = new pg.Pool({ connectionString, max: 1 });
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max: 2 }) });

const settings = `select current_setting('annals.actor', true) as actor, current_setting('annals.context', true) as context`;
const jane = { actor: 'Jane Doe', context: { ip: '10.0.0.1' } };

before(async () => {
  await pool.query('drop table if exists annals_example_items');
  await pool.query('create table annals_example_items (id int primary key, title text not null)');
  await pool.query(`create publication ${name} for table annals_example_items`);
  await pool.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [name]);
});

after(async () => {
  await pool.query('select pg_drop_replication_slot($1)', [name]);
  await pool.query(`drop publication ${name}`);
  await pool.query('drop table annals_example_items');
  await Promise.all([pool.end(), prisma.$disconnect()]);
});

/** The messages about an actor that are new in the log, as `annals capture` reads them. */
async function messages(): Promise<unknown[]> {
  const { rows } = await pool.query<{ data: Buffer }>(
    `select data from pg_logical_slot_get_binary_changes($1::name, null, null, 'proto_version', '1', 'publication_names', $1::text,
       'messages', 'true')`,
    [name],
  );
  const prefix = 'annals.actor\0';
  const texts = rows.map(({ data }) => data.toString('utf8')).filter((text) => text.includes(prefix));
  return texts.map((text) => JSON.parse(text.slice(text.indexOf('{'))));
}

test('for triggers: a transaction of a request has its author, and no other one', async () => {
  const [mine, other] = await Promise.all([
    actAs(jane, () =>
      inTransaction(prisma, async (transaction) => {
        await transaction.item.create({ data: { id: 1, title: 'Lamp' } });
        return await transaction.$queryRawUnsafe(settings);
      }),
    ),
    inTransaction(prisma, (transaction) => transaction.$queryRawUnsafe<{ actor: string | null }[]>(settings)),
  ]);
  assert.deepEqual(mine, [{ actor: 'Jane Doe', context: '{"ip":"10.0.0.1"}' }]);
  assert.ok([null, ''].includes(other[0]?.actor ?? null));
  assert.deepEqual(await messages(), []);
});

test('for capture: the transaction also writes the message, and none where it rolls back', async () => {
  const update = (fails: boolean) =>
    actAs(jane, () =>
      inTransaction(
        prisma,
        async (transaction) => {
          await transaction.item.update({ where: { id: 1 }, data: { title: 'Desk lamp' } });
          if (fails) throw new Error('rolled back');
        },
        { capture: true },
      ),
    );
  await update(false);
  assert.deepEqual(await messages(), [jane]);
  await assert.rejects(update(true), /rolled back/);
  assert.deepEqual(await messages(), []);
});

test('outside of a transaction it refuses', async () => {
  const run = async (text: string, values: unknown[]) => ({
    rows: await prisma.$queryRawUnsafe<Record<string, unknown>[]>(text, ...values),
  });
  await assert.rejects(
    actAs(jane, () => tellAuthor(run)),
    /must run in a transaction/,
  );
});
