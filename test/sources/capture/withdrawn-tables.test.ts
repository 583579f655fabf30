import { describe, expect, inject, test } from 'vitest';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { type CaptureSetup, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const definition = `create table orders (id int primary key, title text); create table notes (id int primary key, title text);
  insert into orders values (1, 'one'); insert into notes values (1, 'one')`;
const full = 'alter table orders replica identity full';

async function prepared(more = '') {
  const source = databases.openSource();
  await source.pool.query(`${definition}; ${more}`);
  const history = databases.openHistory();
  const tables = { 'public.orders': { entity: 'order', id: ['id'] }, 'public.notes': { entity: 'note' } };
  const setup: CaptureSetup = { source, history, tables };
  const changes = async () =>
    (await entriesOf(history)).map(({ type, entity, paths: { title } }) => [type, entity, title?.after]);
  return { source, setup, changes };
}

const gapsOf = ({ messages }: { messages: string[] }) => messages.filter((message) => message.startsWith('gap: '));
const published = 'select tablename from pg_publication_tables order by 1';

/** PostgreSQL 15 has no virtual columns, and publishes no generated ones. */
const isOldest = inject('oldestFolder') !== null;

/** A migration, why updates fail after it, what fixes it, and how many columns the table has then. */
const migrations: [what: string, before: string, migration: string, reason: string, statement: string][] = [
  [
    'lost its primary key',
    '',
    'alter table orders drop constraint orders_pkey',
    'public.orders has no replica identity',
    'alter table "public"."orders" replica identity full;',
  ],
  [
    'got a deferrable key in place of its own',
    '',
    'alter table orders drop constraint orders_pkey, add primary key (id) deferrable',
    'public.orders has no replica identity',
    'alter table "public"."orders" replica identity full;',
  ],
  [
    'lost the index of its identity',
    'alter table orders replica identity using index orders_pkey; alter table orders alter title set not null',
    'alter table orders drop constraint orders_pkey; create unique index again on orders (id)',
    'public.orders has no replica identity',
    'alter table "public"."orders" replica identity full;',
  ],
  [
    'got a virtual generated column',
    full,
    'alter table orders add length int generated always as (length(title))',
    'public.orders: its virtual generated column length cannot be published',
    'alter table "public"."orders" replica identity default;',
  ],
  [
    'is said to have no identity',
    full,
    'alter table orders replica identity nothing',
    'public.orders has no replica identity',
    'alter table "public"."orders" replica identity full;',
  ],
];
const possible = migrations.filter(([what]) => !isOldest || !what.includes('virtual'));

describe('a published table that a migration made unwritable is taken out of the publication', () => {
  test.each(possible)(
    'at once, where it %s: it has a gap, the others continue, and --resync closes it',
    async (_what, before, migration, reason, statement) => {
      const { source, setup, changes } = await prepared(before);
      const running = startCapture({ ...setup, choice: { snapshot: true } });
      expect(await running.running).toEqual(['public.notes', 'public.orders']);
      await source.pool.query(migration);
      await expect(source.pool.query(`update orders set title = 'two'`)).rejects.toThrow('cannot update table');
      await eventually(() => gapsOf(running)).toEqual([
        expect.stringMatching(
          new RegExp(
            `^gap: ${reason}.*out of the publication.* Run: ${statement} Then start capture once with --resync$`,
          ),
        ),
      ]);
      await source.pool.query(`update orders set title = 'two'; update notes set title = 'two'`);
      await eventually(async () => (await changes()).slice(2)).toEqual([['update', 'note', 'two']]);
      await running.stop();

      const second = startCapture(setup);
      expect(await second.running).toEqual(['public.notes']);
      expect(gapsOf(second)).toEqual([expect.stringContaining('the changes of public.orders are not recorded')]);
      await source.pool.query(`${statement} update orders set title = 'three'; update notes set title = 'three'`);
      await eventually(async () => (await changes()).slice(3)).toEqual([['update', 'note', 'three']]);
      await second.stop();

      const third = startCapture({ ...setup, choice: { resync: true } });
      expect(await third.running).toEqual(['public.notes', 'public.orders']);
      expect((await changes()).slice(4)).toEqual([['update', 'order', 'three']]);
      await source.pool.query(`update orders set title = 'four'`);
      await eventually(async () => (await changes()).slice(5)).toEqual([['update', 'order', 'four']]);
    },
  );

  test.each(possible)('at the next start, where it %s while capture did not run', async (_what, before, migration) => {
    const { source, setup, changes } = await prepared(before);
    const first = startCapture({ ...setup, choice: { snapshot: true } });
    await first.running;
    await first.stop();
    await source.pool.query(migration);
    const second = startCapture(setup);
    expect(await second.running).toEqual(['public.notes']);
    expect(gapsOf(second)[0]).toContain('out of the publication');
    await source.pool.query(`update orders set title = 'two'; update notes set title = 'two'`);
    await eventually(async () => (await changes()).slice(2)).toEqual([['update', 'note', 'two']]);
  });

  test('also where --resync refuses to start with it', async () => {
    const { source, setup } = await prepared();
    const first = startCapture(setup);
    await first.running;
    await first.stop();
    await source.pool.query('alter table orders drop constraint orders_pkey');
    await expect(startCapture({ ...setup, choice: { resync: true } }).ended).rejects.toThrow(
      'public.orders has no replica identity',
    );
    await source.pool.query(`update orders set title = 'two'`);
    expect((await source.pool.query(published)).rows).toEqual([{ tablename: 'notes' }]);
  });

  test('not where --alter fixes it at the start: nothing is missing then', async () => {
    const { source, setup, changes } = await prepared();
    const first = startCapture(setup);
    await first.running;
    await first.stop();
    await source.pool.query('alter table orders drop constraint orders_pkey');
    const second = startCapture({ ...setup, choice: { alter: true } });
    expect(await second.running).toEqual(['public.notes', 'public.orders']);
    await source.pool.query(`update orders set title = 'two'`);
    await eventually(changes).toEqual([['update', 'order', 'two']]);
  });

  test('--accept-gap takes it back without what it missed', async () => {
    const { source, setup, changes } = await prepared();
    const first = startCapture(setup);
    await first.running;
    await source.pool.query('alter table orders drop constraint orders_pkey');
    await eventually(() => gapsOf(first)).toHaveLength(1);
    await first.stop();
    await source.pool.query(`update orders set title = 'lost'; ${full}`);
    const second = startCapture({ ...setup, choice: { acceptGap: true } });
    expect(await second.running).toEqual(['public.notes', 'public.orders']);
    await source.pool.query(`update orders set title = 'three'`);
    await eventually(changes).toEqual([['update', 'order', 'three']]);
  });

  test('where the role may not alter the publication: the log has the statements for an owner, once fixed nothing is missing', async () => {
    const { source, setup, changes } = await prepared();
    const role = `role_${source.slot}`;
    await source.pool.query(`create publication ${source.slot} for table only notes, only orders with (publish_via_partition_root = true
        ${isOldest ? '' : ', publish_generated_columns = stored'}); create role ${role} login replication password 'hunter2'; grant select on orders, notes to ${role}`);
    try {
      const url = new URL(source.url);
      url.username = role;
      url.password = 'hunter2';
      const running = startCapture({ ...setup, url: url.href, heartbeat: 200 });
      await running.running;
      await source.pool.query('alter table orders drop constraint orders_pkey');
      const advice = `Run: ${full.replace('orders', '"public"."orders"')}; Or run: alter publication "${source.slot}" drop table only "public"."orders";`;
      await eventually(() => running.messages.filter((message) => message.includes('owner'))).toContainEqual(
        expect.stringContaining(advice),
      );
      await source.pool.query(`${full}; update orders set title = 'two'`);
      await eventually(changes).toEqual([['update', 'order', 'two']]);
      await running.stop();
    } finally {
      await source.pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });
});

test('a migration that changes rows while it replaces the primary key works with replica identity full', async () => {
  const { source, setup, changes } = await prepared(full);
  const running = startCapture(setup);
  await running.running;
  await source.pool.query(
    `begin; alter table orders drop constraint orders_pkey; update orders set title = 'two'; alter table orders add primary key (id); commit`,
  );
  await eventually(changes).toEqual([['update', 'order', 'two']]);
  expect(gapsOf(running)).toEqual([]);
});
