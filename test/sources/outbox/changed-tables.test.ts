import { describe, expect, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { useHistory } from '../history.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

const orders = 'create table orders (id int primary key, title text, card text, size int)';
const tables = { 'public.orders': { entity: 'order', mask: ['card'] } };
const masked = '********';

/** A trigger of the application's has Annals write the table row by row. */
const byRow = `create function nothing() returns trigger language plpgsql as 'begin return null; end';
  create trigger audit after update on orders for each row execute function nothing()`;
const parted = `create table orders (dropped int, id int primary key, title text, card text, size int) partition by range (id);
  create table orders_1 (size int, title text, id int not null, card text); alter table orders drop column dropped;
  alter table orders attach partition orders_1 for values from (0) to (10)`;

describe('changes of tables and triggers while the relay runs are reported', () => {
  test('a table that is rebuilt under its name, until its triggers are made again, and once more where that happens again', async () => {
    const application = await createApplication(openHistory(), orders, tables);
    const { pool, history } = application;
    const { messages } = startRelay(application);
    const lost =
      'the table public.orders has no trigger, so its changes are not recorded. It may have been recreated, or mapped later. ' +
      'Run the SQL of annals outbox again';
    for (const id of [1, 2]) {
      await pool.query(`begin; create table orders_new (like orders including all); insert into orders_new select * from orders;
        drop table orders; alter table orders_new rename to orders; commit`);
      await eventually(async () => messages.filter((message) => message === lost)).toHaveLength(id);
      await application.install();
      await pool.query(`insert into orders values ($1, 'one', null, 5)`, [id]);
      await eventually(() => entriesOf(history)).toHaveLength(id);
    }
    const { messages: ofNext } = startRelay(application);
    await pool.query('drop trigger annals_insert on orders');
    await eventually(async () => ofNext).toContain(lost);
  });

  test('columns and partitions that came, went and changed, and triggers of an older version', async () => {
    const application = await createApplication(
      openHistory(),
      `create table orders (id int primary key, title text, card text, size int) partition by range (id);
       create table first partition of orders for values from (0) to (10);
       create table second (like orders including all)`,
      tables,
    );
    const { pool } = application;
    const { running, messages } = startRelay(application);
    await running;
    await pool.query(`create table third partition of orders for values from (20) to (30);
      alter table orders attach partition second for values from (10) to (20)`);
    await eventually(async () => messages).toEqual([
      'public.second was attached to public.orders: the rows that it had are not recorded',
    ]);
    await pool.query(
      'alter table orders detach partition first; alter table orders drop column size, alter title type varchar(9)',
    );
    await eventually(async () => messages.slice(1)).toEqual([
      'the table public.orders no longer has size and has another type of title. Its documents stay as they were recorded until their rows change',
      'public.first was detached from public.orders: no deletes of its rows are recorded',
    ]);
    await pool.query('alter function annals.change_of rename to change');
    await eventually(async () => messages.slice(3)).toEqual([
      'the triggers are of an older version, which can make statements of the application fail. Run the SQL of annals outbox again',
    ]);
  });
});

describe('columns that came after the SQL of the outbox are masked, whatever their type', () => {
  test.each([
    ['once a statement', orders],
    ['row by row', `${orders}; ${byRow}`],
    ['in partitions', parted],
  ])('where triggers run %s', async (_how, definition) => {
    const application = await createApplication(openHistory(), definition, tables);
    const { pool, history } = application;
    await pool.query(`insert into orders (id, title, card, size) values (1, 'one', 'canary-1', 5)`);
    await pool.query(`create type pair as (a text, b int);
      alter table orders rename card to card_no;
      alter table orders add code int, add doc jsonb, add list text[], add both_ pair`);
    await pool.query(
      `update orders set title = 'two', card_no = 'canary-2', code = 1999999991, doc = '{"a": "canary-3"}', list = '{canary-4}', both_ = ('canary-5', 1)`,
    );
    await pool.query(`update orders set title = 'three'`);
    await pool.query(`update orders set code = 1999999992`);
    await pool.query('delete from orders');
    const { rows } = await pool.query('select o::text as row from annals.outbox o');
    expect(rows.map(({ row }) => row).join()).not.toMatch(/canary|199999999/);
    const { messages } = startRelay(application);
    await eventually(() => entriesOf(history)).toHaveLength(5);
    const paths = (await entriesOf(history)).map((entry) => entry.paths);
    const shown = { before: masked, after: masked };
    expect(paths.slice(1)).toEqual([
      {
        title: { before: 'one', after: 'two' },
        card_no: shown,
        code: { before: null, after: masked },
        doc: { before: null, after: masked },
        list: { before: null, after: masked },
        both_: { before: null, after: masked },
      },
      { title: { before: 'two', after: 'three' } },
      { code: shown },
      {
        id: { before: 1 },
        title: { before: 'three' },
        size: { before: 5 },
        card_no: { before: masked },
        code: { before: masked },
        doc: { before: masked },
        list: { before: masked },
        both_: { before: masked },
      },
    ]);
    expect(messages.filter((message) => message.includes('came after'))).toEqual([
      'public.orders has columns that came after the SQL of annals outbox ran: card_no, code, doc, list, both_. Their values are masked. ' +
        'Run the SQL of annals outbox again',
    ]);
  });

  test('also where two columns have changed their names, and in a truncate', async () => {
    const application = await createApplication(openHistory(), orders, tables);
    const { pool, history } = application;
    await pool.query(`insert into orders values (1, 'one', 'canary', 5)`);
    await pool.query(
      `alter table orders rename title to other; alter table orders rename card to title; alter table orders rename other to card`,
    );
    await pool.query('truncate orders');
    expect(
      (await pool.query('select o::text as row from annals.outbox o')).rows.map(({ row }) => row).join(),
    ).not.toContain('canary');
    startRelay(application);
    await eventually(() => entriesOf(history)).toHaveLength(2);
    expect((await entriesOf(history))[1]?.paths).toEqual({
      id: { before: 1 },
      title: { before: masked },
      card: { before: masked },
      size: { before: 5 },
    });
  });

  test('until the SQL runs again: with the mapping that names them, they are as it says', async () => {
    const application = await createApplication(openHistory(), orders, tables);
    const { pool, history, mapping } = application;
    await pool.query(`insert into orders values (1, 'one', 'canary', 5)`);
    await pool.query('alter table orders rename card to card_no; alter table orders add code int');
    const table = { entity: 'order', mask: ['card'], former: { card: 'card_no' } };
    const today = { ...mapping, tables: { 'public.orders': table } };
    await pool.query(outboxSql(readMapping(JSON.stringify(today))));
    await pool.query(`update orders set code = 7, card_no = 'canary-2'`);
    startRelay({ ...application, mapping: today });
    await eventually(() => entriesOf(history)).toHaveLength(2);
    const paths = (await entriesOf(history)).map((entry) => entry.paths);
    expect(paths).toEqual([
      { id: { after: 1 }, title: { after: 'one' }, card_no: { after: masked }, size: { after: 5 } },
      { card_no: { before: masked, after: masked }, code: { before: null, after: 7 } },
    ]);
  });

  test('also of a row that gets another tenant: it is a delete there and a create here', async () => {
    const application = await createApplication(
      openHistory(),
      'create table orders (id int primary key, org text)',
      tables,
      { tenant: { column: 'org' }, tenants: { one: 'acme', two: 'beta' } },
    );
    const { pool, history } = application;
    Object.assign(application.mapping, { tables: { 'public.orders': { entity: 'order' } } });
    await application.install();
    await createTenant(history.db, 'beta');
    await pool.query(
      `alter table orders add note text; insert into orders values (1, 'one', 'canary'); update orders set org = 'two'`,
    );
    startRelay(application);
    await eventually(async () => (await entriesOf(history)).map(({ type }) => type)).toEqual(['create', 'delete']);
    expect((await entriesOf(history, 'beta')).map(({ type, paths }) => [type, paths])).toEqual([
      ['create', { id: { after: 1 }, org: { after: 'two' }, note: { after: masked } }],
    ]);
  });

  test('the SQL that is printed for the name of tomorrow masks the column under both', async () => {
    const table = { entity: 'order', mask: ['card_no'], former: { card: 'card_no' } };
    const application = await createApplication(openHistory(), orders, { 'public.orders': table });
    const { pool } = application;
    await pool.query(
      `insert into orders values (1, 'one', 'canary', 5); alter table orders rename card to card_no; update orders set card_no = 'canary-2'`,
    );
    expect(
      (await pool.query('select o::text as row from annals.outbox o')).rows.map(({ row }) => row).join(),
    ).not.toContain('canary');
  });
});
