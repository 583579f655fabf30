import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { currentContext } from '@annals/client/context';
import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ada, asAda, asBen, ben, recorded, useShop } from '../shop.ts';
import { open as openDrizzle } from './drizzle.ts';
import { open as openKnex } from './knex.ts';
import { open as openKysely } from './kysely.ts';
import { testOrm } from './law.ts';
import { open as openMikroOrm } from './mikro-orm.ts';
import { open as openPg } from './pg.ts';
import { open as openSequelize } from './sequelize.ts';
import { open as openTypeOrm } from './typeorm.ts';

const openShop = useShop();

describe.each([
  ['pg', openPg],
  ['Drizzle', openDrizzle],
  ['TypeORM', openTypeOrm],
  ['Knex', openKnex],
  ['Kysely', openKysely],
  ['Sequelize', openSequelize],
  ['MikroORM', openMikroOrm],
])('%s', (_name, open) => testOrm(openShop, open));

test('postgres.js, with the statement by hand in sql.begin', async () => {
  const shop = await openShop();
  const sql = postgres(shop.url, { max: 4 });
  onTestFinished(() => sql.end());
  const begin = (run: (transaction: postgres.TransactionSql) => Promise<unknown>) =>
    sql.begin(async (transaction) => {
      const who = JSON.stringify(currentContext() ?? {}).replace(
        /[^ -~]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      await transaction`
        select pg_catalog.set_config('annals.who', ${who}, true),
          case when not pg_catalog.pg_is_in_recovery() then pg_catalog.pg_logical_emit_message(true, 'annals.who', ${who}) end`;
      await run(transaction);
    });
  const insert = (item: number) => (transaction: postgres.TransactionSql) =>
    transaction`insert into items (id) values (${item})`;
  await Promise.all([asAda(() => begin(insert(1))), asBen(() => begin(insert(2))), begin(insert(3))]);
  await asAda(() => sql`insert into items (id) values (4)`);
  expect(await recorded(shop)).toEqual([
    [1, ada],
    [2, ben],
    [3, null],
    [4, null],
  ]);
});

const unchanged = `
  import { runWithContext } from '@annals/client/context';
  import { MikroORM } from '@mikro-orm/postgresql';
  import { drizzle } from 'drizzle-orm/node-postgres';
  import knex from 'knex';
  import { Sequelize } from 'sequelize';
  import { DataSource } from 'typeorm';
  const url = process.env.DATABASE_URL;
  const insert = (item) => 'insert into items (id) values (' + item + ')';
  const as = (actor, write) => runWithContext({ actor }, write);
  const [k, s] = [knex({ client: 'pg', connection: url }), new Sequelize(url, { logging: false })];
  await as('Knex', async () => await k.raw(insert(1)));
  await as('Sequelize', () => s.query(insert(2)));
  const [m, t] = [await MikroORM.init({ clientUrl: url, entities: [], discovery: { warnWhenNoEntities: false } }), new DataSource({ type: 'postgres', url })];
  await as('MikroORM', () => m.em.execute(insert(3)));
  await t.initialize();
  await as('TypeORM', () => t.query(insert(4)));
  const d = drizzle(url);
  await as('Drizzle', async () => await d.execute(insert(5)));
  await Promise.all([k.destroy(), s.close(), m.close(), t.destroy(), d.$client.end()]);
`;

test('libraries that load pg themselves are attributed by the flag of node alone', async () => {
  const shop = await openShop();
  await promisify(execFile)(
    process.execPath,
    ['--import', '@annals/client/register', '--input-type=module', '--eval', unchanged],
    { cwd: import.meta.dirname, env: { PATH: process.env.PATH, DATABASE_URL: shop.url } },
  );
  expect(await recorded(shop)).toEqual(
    ['Knex', 'Sequelize', 'MikroORM', 'TypeORM', 'Drizzle'].map((actor, index) => [index + 1, { actor }]),
  );
});
