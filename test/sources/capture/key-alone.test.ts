import { expect, test } from 'vitest';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { captureOrders, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const flags = 'create table orders (id int primary key, title text, enabled bool, card text, doc jsonb, large text)';
const masked = '********';

async function captured(rules: object = { entity: 'flag' }) {
  const found = await captureOrders(databases, flags, rules);
  const paths = async () => (await entriesOf(found.history)).map((entry) => entry.paths);
  return { ...found, paths };
}

test('an update shows what the history had before it, and one that changes nothing is none', async () => {
  const { source, paths, running, setup } = await captured();
  await source.pool.query(`insert into orders values (1, 'one', false, null, '{"a": 1, "b": [1, 2]}')`);
  await eventually(paths).toHaveLength(1);
  await source.pool.query('update orders set enabled = true');
  await source.pool.query('update orders set enabled = true');
  await source.pool.query(
    `begin; update orders set doc = '{"a": 2, "b": [1, 2]}'; update orders set doc = '{"b": [1, 2, 3]}'; update orders set title = 'two'; commit`,
  );
  await running.stop();
  // A capture that starts over reads the document from the history.
  await startCapture(setup).running;
  await source.pool.query(`update orders set title = 'two'; update orders set title = 'three', enabled = true`);
  await eventually(paths).toHaveLength(6);
  expect((await paths()).slice(1)).toEqual([
    { enabled: { before: false, after: true } },
    { 'doc.a': { before: 1, after: 2 } },
    { 'doc.a': { before: 2 }, 'doc.b.2': { after: 3 } },
    { title: { before: 'one', after: 'two' } },
    { title: { before: 'two', after: 'three' } },
  ]);
});

test('a row that is deleted and inserted again is compared with its new values, also in one transaction', async () => {
  const { source, paths } = await captured();
  await source.pool.query(`begin; insert into orders values (1, 'one'); update orders set title = 'two'; delete from orders;
    insert into orders values (2, 'other'), (1, 'three'); update orders set title = 'four' where id = 1; commit`);
  await source.pool.query(
    `update orders set title = 'five' where id = 1; truncate orders; insert into orders values (1, 'six'); update orders set title = 'seven'`,
  );
  await eventually(async () =>
    (await paths())
      .filter(({ title }) => title?.before !== undefined && title.after !== undefined)
      .map(({ title }) => title),
  ).toEqual([
    { before: 'one', after: 'two' },
    { before: 'three', after: 'four' },
    { before: 'four', after: 'five' },
    { before: 'six', after: 'seven' },
  ]);
});

test('a masked value that the log has counts as changed, and null stays null', async () => {
  const { source, history, paths } = await captured({ entity: 'flag', mask: ['card'] });
  await source.pool.query(`insert into orders values (1, 'one', false, 'canary'), (2, 'two', false, null)`);
  await source.pool.query('update orders set enabled = true; update orders set enabled = true');
  await eventually(paths).toHaveLength(5);
  const shown = { card: { before: masked, after: masked } };
  expect((await paths()).slice(2)).toEqual([
    { enabled: { before: false, after: true }, ...shown },
    { enabled: { before: false, after: true } },
    shown,
  ]);
  expect(
    (await history.pool.query('select e::text as row from change_entry e')).rows.map(({ row }) => row).join(),
  ).not.toContain('canary');
});

test('a large value that is not in the log stays as the history has it', async () => {
  const { source, paths } = await captured();
  await source.pool.query('alter table orders alter large set storage external');
  await source.pool.query(`insert into orders values (1, 'one', false, null, null, repeat('x', 9000))`);
  await source.pool.query(
    `update orders set title = 'two'; update orders set title = 'two'; update orders set large = 'short'`,
  );
  await eventually(paths).toHaveLength(3);
  expect((await paths()).slice(1)).toEqual([
    { title: { before: 'one', after: 'two' } },
    { large: { before: 'x'.repeat(9000), after: 'short' } },
  ]);
});

test('where the history does not have the whole document, an update is the new row', async () => {
  const { source, history, running, setup, paths } = await captured();
  await running.stop();
  await source.pool.query(`insert into orders values (1, 'one', false)`);
  await source.pool.query('select pg_replication_slot_advance($1, pg_current_wal_lsn())', [source.slot]);
  await startCapture({ ...setup, choice: { acceptGap: true } }).running;
  await source.pool.query('update orders set enabled = true');
  await source.pool.query('update orders set enabled = false');
  await eventually(paths).toHaveLength(2);
  const [first, second] = await entriesOf(history);
  expect(first?.paths).toMatchObject({ id: { after: 1 }, enabled: { after: true } });
  expect(second?.paths).toEqual({ enabled: { before: true, after: false } });
});

test('changes that come once more are no changes of what came after them', async () => {
  const { source, history, running, setup, paths } = await captured();
  await source.pool.query(`insert into orders values (1, 'one', false)`);
  await eventually(paths).toHaveLength(1);
  const {
    rows: [position],
  } = await history.pool.query('select row_to_json(p) as row from capture_position p');
  await running.stop();
  await source.pool.query(`update orders set title = 'two'; update orders set title = 'three'`);
  // The slot is behind the position, as after a crash of the source.
  const {
    rows: [slot],
  } = await source.pool.query('select pg_copy_logical_replication_slot($1, $2) as name', [
    source.slot,
    `${source.slot}_copy`,
  ]);
  expect(slot).toBeDefined();
  const second = startCapture(setup);
  await second.running;
  await eventually(paths).toHaveLength(3);
  await second.stop();
  await eventually(
    async () =>
      (await source.pool.query('select active from pg_replication_slots where slot_name = $1', [source.slot])).rows[0]
        ?.active,
  ).toBe(false);
  await source.pool.query('select pg_drop_replication_slot($1)', [source.slot]);
  await source.pool.query('select pg_copy_logical_replication_slot($2, $1)', [source.slot, `${source.slot}_copy`]);
  await history.pool.query(
    `update capture_position set (commit_lsn, end_lsn, xid, committed_at, changes, complete, last_at) =
       (select commit_lsn, end_lsn, xid, committed_at, changes, complete, last_at from json_populate_record(null::capture_position, $1))`,
    [JSON.stringify(position?.row)],
  );
  await startCapture(setup).running;
  await source.pool.query(`update orders set title = 'four'`);
  await eventually(paths).toHaveLength(4);
  expect((await paths()).at(-1)).toEqual({ title: { before: 'three', after: 'four' } });
  expect((await history.pool.query('select reason from change_rejected')).rows).toEqual([]);
});
