import { describe, expect, test } from 'vitest';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { captureOrders, startCapture, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

const orders =
  'create table orders (id int primary key, title text, card text, doc jsonb, owner int); alter table orders replica identity full';
const rules = { entity: 'order', mask: ['card'] };
const insert = `insert into orders values (1, 'one', 'canary-1', '{}', 7)`;

type Setup = Awaited<ReturnType<typeof captureOrders>>;

async function captured(
  own: object = rules,
  rest: object = {},
): Promise<Setup & { start: (own: object) => ReturnType<typeof startCapture> }> {
  const found = await captureOrders(databases, orders, own);
  const { source, history, running } = found;
  const start = (table: object) =>
    startCapture({
      source,
      history,
      mapping: { version: 1, tenant: { value: 'acme' }, tables: { 'public.orders': table }, ...rest },
    });
  if (Object.keys(rest).length > 0) {
    await running.stop();
    const again = start(own);
    await again.running;
    return { ...found, running: again, start };
  }
  return { ...found, start };
}

const pathsOf = async ({ history }: Pick<Setup, 'history'>) => (await entriesOf(history)).map(({ paths }) => paths);
const masked = '********';

describe('a column that the mapping names and the table no longer has', () => {
  test('a column that still exists is not reported where another is gone', async () => {
    const { source, running, start } = await captured({ entity: 'order', mask: ['card', 'owner'] });
    await source.pool.query(`${insert}; alter table orders rename card to card_no; update orders set owner = 8`);
    const failure = await running.ended.catch((error: Error) => error.message);
    expect(failure).toContain('no column card (mask) any more');
    expect(failure).not.toContain('no column owner');
    const again = start({ entity: 'order', mask: ['card_no', 'owner'], former: { card: 'card_no' } });
    await again.running;
  });

  test('a masked column that is renamed stops capture, and its value is nowhere; named as former it continues and loses nothing', async () => {
    const setup = await captured();
    const { source, running, history, start } = setup;
    await source.pool.query(insert);
    await source.pool.query(
      `begin; update orders set title = 'two', card = 'canary-2'; alter table orders rename card to card_no;
       update orders set card_no = 'canary-3'; commit`,
    );
    await source.pool.query(`update orders set card_no = 'canary-4', title = 'three'`);
    await expect(running.ended).rejects.toThrow('public.orders has no column card (mask) any more');
    expect(await pathsOf(setup)).toHaveLength(1);
    await expect(start(rules).ended).rejects.toThrow('has no column card (mask) any more');
    // The rows of before the rename are still in the log, so the new name alone would leave them without a mask.
    await expect(start({ entity: 'order', mask: ['card_no'] }).ended).rejects.toThrow('has no column card_no (mask)');
    expect(await pathsOf(setup)).toHaveLength(1);

    await start({ ...rules, former: { card: 'card_no' } }).running;
    await eventually(() => pathsOf(setup)).toHaveLength(4);
    const shown = { before: masked, after: masked };
    expect((await pathsOf(setup)).slice(1)).toEqual([
      { title: { before: 'one', after: 'two' }, card_no: shown },
      { card_no: shown },
      { card_no: shown, title: { before: 'two', after: 'three' } },
    ]);
    const { rows } = await history.pool.query('select e::text as row from change_entry e');
    expect(rows.map(({ row }) => row).join()).not.toContain('canary');
  });

  test.each([
    ['a rule of the entity', { entity: 'order' }, { entities: { order: { mask: ['card'] } } }, 'card', 'mask'],
    ['an ignored column', { entity: 'order', ignore: ['card'] }, {}, 'card', 'ignore'],
    ['a path in a column', { entity: 'order', mask: ['doc.pin'] }, {}, 'doc', 'mask'],
    ['a column of JSON', { entity: 'order', json: ['card'] }, {}, 'card', 'json'],
    ['the context', { entity: 'order', context: { card: 'card' } }, {}, 'card', 'context'],
    ['a related document', { entity: 'order', related: [{ entity: 'owner', id: ['owner'] }] }, {}, 'owner', 'related'],
    ['the name', { entity: 'order', name: 'title' }, {}, 'title', 'name'],
    ['the actor', { entity: 'order', actor: 'title' }, {}, 'title', 'actor'],
    ['the version', { entity: 'order', schemaVersion: { column: 'title' } }, {}, 'title', 'schemaVersion'],
    ['the id', { entity: 'order', id: ['id'] }, {}, 'id', 'id'],
  ])('capture stops also where the column is of %s', async (_what, own, rest, column, use) => {
    const setup = await captured(own, rest);
    await setup.source.pool.query(
      `alter table orders rename ${column} to other; insert into orders values (1, 'one', 'canary')`,
    );
    await expect(setup.running.ended).rejects.toThrow(`public.orders has no column ${column} (${use}) any more`);
    expect(await pathsOf(setup)).toEqual([]);
    await setup.start({ ...own, former: { [column]: 'other' } }).running;
    await eventually(() => pathsOf(setup)).toHaveLength(1);
  });

  test('a column that is dropped stops capture until the mapping says so', async () => {
    const setup = await captured();
    const { source, running, start } = setup;
    await source.pool.query(
      `begin; ${insert}; alter table orders drop column card; update orders set title = 'two'; commit`,
    );
    await expect(running.ended).rejects.toThrow('has no column card (mask) any more');
    await start({ ...rules, former: { card: null } }).running;
    await eventually(() => pathsOf(setup)).toHaveLength(2);
    expect(JSON.stringify(await pathsOf(setup))).not.toContain('canary');
  });

  test('a new column under the old name does not hide that the old one was renamed', async () => {
    const setup = await captured();
    const { source, running, start } = setup;
    await source.pool.query(insert);
    await source.pool.query(
      `begin; alter table orders rename card to card_no; alter table orders add card text; update orders set card_no = 'canary-2'; commit`,
    );
    await expect(running.ended).rejects.toThrow('has no column card (mask) any more, or it is another one');
    await start({ ...rules, former: { card: 'card_no' } }).running;
    await eventually(() => pathsOf(setup)).toHaveLength(2);
    expect(JSON.stringify(await pathsOf(setup))).not.toContain('canary');
  });

  test('a rule for a column that the log got later does not stop capture at the rows of before', async () => {
    const setup = await captured({ entity: 'order' });
    const { source, running, start } = setup;
    await running.stop();
    await source.pool.query(`${insert}; alter table orders add phone text; update orders set phone = 'canary'`);
    await start({ entity: 'order', mask: ['phone', 'card'] }).running;
    await eventually(() => pathsOf(setup)).toHaveLength(2);
    expect((await pathsOf(setup))[1]).toEqual({ phone: { before: null, after: masked } });
    expect(JSON.stringify(await pathsOf(setup))).not.toContain('canary');
  });

  test('a column that no rule names may be dropped or added: that is reported, and --resync brings the documents up to date', async () => {
    const setup = await captured();
    const { source, running, start, history } = setup;
    await source.pool.query(insert);
    await source.pool.query(
      `alter table orders drop column owner; alter table orders add size int default 4; alter table orders alter title type varchar(9);
       update orders set title = 'two'`,
    );
    const notice =
      'the table public.orders no longer has owner and now has size and has another type of title. Its documents stay as they ' +
      'were recorded until their rows change. Run capture once with --resync to record the present rows';
    await eventually(() => running.messages.filter((message) => message.includes('the table'))).toEqual([notice]);
    await eventually(() => pathsOf(setup)).toHaveLength(2);
    await running.stop();
    const again = start(rules);
    await again.running;
    await source.pool.query(`update orders set title = 'three'`);
    await eventually(() => pathsOf(setup)).toHaveLength(3);
    expect(again.messages.filter((message) => message.includes('the table'))).toEqual([]);
    await again.stop();
    await startCapture({ source, history, tables: { 'public.orders': rules }, choice: { resync: true } }).running;
    expect((await pathsOf(setup)).at(-1)).toEqual({ owner: { before: 7 }, size: { after: 4 } });
  });
});
