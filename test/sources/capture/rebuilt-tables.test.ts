import { describe, expect, test } from 'vitest';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { type CaptureSetup, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const orders = 'create table orders (id int primary key, title text); alter table orders replica identity full';
const rebuild = `begin; create table orders_new (like orders including all); alter table orders_new replica identity full;
  insert into orders_new select * from orders; drop table orders; alter table orders_new rename to orders; commit`;

async function prepared(definition = orders) {
  const source = databases.openSource();
  await source.pool.query(definition);
  const history = databases.openHistory();
  const setup: CaptureSetup = { source, history, tables: { 'public.orders': { entity: 'order' } }, heartbeat: 50 };
  const idsOf = async () => (await entriesOf(history)).map(({ type, entityId }) => `${type} ${entityId}`);
  return { ...setup, source, history, idsOf, setup };
}

describe('rows of a mapped table that are not in the log are a gap', () => {
  const causes: [string, (slot: string) => string, string][] = [
    ['is rebuilt under its name', () => rebuild, 'another table has the name public.orders now'],
    [
      'is rebuilt and published in the same transaction',
      (slot) => rebuild.replace('; commit', `; alter publication ${slot} add table only orders; commit`),
      'another table has the name public.orders now',
    ],
    [
      'leaves the publication',
      (slot) => `alter publication ${slot} drop table orders`,
      'the table public.orders left the publication',
    ],
    [
      'left the publication and came back',
      (slot) =>
        `alter publication ${slot} drop table orders; insert into orders values (8, 'lost'); alter publication ${slot} add table only orders`,
      'the table public.orders left the publication',
    ],
    ['is dropped', () => 'drop table orders', 'the table public.orders is gone'],
  ];

  test.each(causes)('at once, where the table %s while capture runs', async (_what, statements, message) => {
    const { source, setup, idsOf } = await prepared();
    const running = startCapture(setup);
    await running.running;
    await source.pool.query(`insert into orders values (1, 'one')`);
    await eventually(idsOf).toEqual(['create 1']);
    await source.pool.query(statements(source.slot));
    await expect(running.ended).rejects.toThrow(`gap: ${message}`);
  });

  test.each(causes)(
    'at the next start, where the table %s in between; no start repairs it silently',
    async (_what, statements, message) => {
      const { source, setup, idsOf } = await prepared();
      const first = startCapture(setup);
      await first.running;
      await source.pool.query(`insert into orders values (1, 'one')`);
      await eventually(idsOf).toEqual(['create 1']);
      await first.stop();
      await source.pool.query(statements(source.slot));
      for (const _start of [1, 2]) await expect(startCapture(setup).ended).rejects.toThrow(`gap: ${message}`);
      await source.pool.query(`create table if not exists orders (id int primary key, title text);
      alter table orders replica identity full; insert into orders values (2, 'two')`);
      const accepting = startCapture({ ...setup, choice: { acceptGap: true } });
      await accepting.running;
      await source.pool.query(`insert into orders values (3, 'three')`);
      await eventually(idsOf).toContain('create 3');
      await accepting.stop();
      const resyncing = startCapture({ ...setup, choice: { resync: true } });
      await resyncing.running;
      const { rows } = await source.pool.query<{ id: number }>('select id from orders order by id');
      const alive = (await idsOf()).filter((text) => text.startsWith('create')).map((text) => Number(text.slice(7)));
      expect(new Set(alive)).toEqual(new Set([...rows.map(({ id }) => id), 1]));
      await source.pool.query(`insert into orders values (4, 'four')`);
      await eventually(idsOf).toContain('create 4');
    },
  );

  test('a table that the mapping has lost and gets again is a new one, and no gap', async () => {
    const { source, setup, idsOf } = await prepared(`${orders}; create table notes (id int primary key)`);
    const both = { 'public.orders': { entity: 'order' }, 'public.notes': { entity: 'note' } };
    for (const tables of [both, { 'public.notes': { entity: 'note' } }, both]) {
      const running = startCapture({ ...setup, tables });
      await running.running;
      await running.stop();
    }
    startCapture({ ...setup, tables: both });
    await source.pool.query(`insert into orders values (1, 'one')`);
    await eventually(idsOf).toEqual(['create 1']);
  });
});

describe('what makes the documents of the history differ from the rows is reported once', () => {
  const parted = `create table orders (id int, region text, title text, primary key (id, region)) partition by list (region);
    create table north partition of orders for values in ('north');
    create table south partition of orders for values in ('south');
    create table east (like orders including all); insert into east values (5, 'east', 'five')`;

  test('a partition that is attached, detached or dropped with its rows, and none that is made as one', async () => {
    const { source, setup } = await prepared(parted);
    const first = startCapture(setup);
    await first.running;
    const toldBy = ({ messages }: { messages: string[] }) => messages.filter((message) => message.includes('--resync'));
    await source.pool.query(
      `create table west partition of orders for values in ('west'); insert into west values (6, 'west', 'six')`,
    );
    await source.pool.query(`alter table orders attach partition east for values in ('east')`);
    await source.pool.query('alter table orders detach partition north');
    await eventually(async () => toldBy(first)).toEqual([
      'public.east was attached to public.orders: the rows that it had are not recorded. Run capture once with --resync to record the present rows',
      'public.north was detached from public.orders: no deletes of its rows are recorded. Run capture once with --resync to record the present rows',
    ]);
    await first.stop();
    await source.pool.query('drop table south');
    const second = startCapture(setup);
    await second.running;
    await eventually(async () => toldBy(second)).toEqual([
      'public.south was dropped, and was a partition of public.orders: no deletes of its rows are recorded. ' +
        'Run capture once with --resync to record the present rows',
    ]);
  });

  test('a table whose replica identity is no longer full', async () => {
    const { source, setup } = await prepared();
    const running = startCapture(setup);
    await running.running;
    await source.pool.query(
      `insert into orders values (1, 'one'); alter table orders replica identity default; update orders set title = 'two'`,
    );
    await eventually(async () => running.messages.filter((message) => message.includes('replica identity'))).toEqual([
      'public.orders no longer has replica identity full: its log lacks the values before a change. Run alter table … replica identity full',
    ]);
  });
});
