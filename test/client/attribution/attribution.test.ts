import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setContext } from '@annals/client/context';
import { from as copyFrom } from 'pg-copy-streams';
import Cursor from 'pg-cursor';
import { describe, expect, test } from 'vitest';
import { ada, asAda, asBen, attributedClient, ben, drivers, recorded, useShop, whoAda } from './shop.ts';

const openShop = useShop();
const whoBen = /^who \{"actor":"Ben".*\\u2603 \\ud83d\\ude00"\}\}$/;

describe.each(drivers)('with pg %s', (_version, driver) => {
  test('outside of a transaction a statement and its setting share one Sync', async () => {
    const shop = await openShop();
    const { client, sent } = await attributedClient(driver, shop);
    const one = await asAda(() => client.query('insert into items values (1)'));
    const two = await asBen(() => client.query('insert into items values ($1, $2) returning note', [2, 'b']));
    const named = { name: 'three', text: 'insert into items values ($1)' };
    await asAda(() => client.query({ ...named, values: [3] }));
    await asBen(() => client.query({ ...named, values: [4] }));
    await asAda(() => client.query('with a as (insert into items values (5) returning id) select id from a'));
    expect([one.rowCount, one.command, one.rows, two.rows]).toEqual([1, 'INSERT', [], [{ note: 'b' }]]);
    expect(sent).toEqual([
      ...[whoAda, 'parse insert into items values (1)', 'sync'],
      ...[expect.stringMatching(whoBen), 'parse insert into items values ($1, $2) returning note', 'sync'],
      ...[whoAda, 'parse insert into items values ($1)', 'sync', expect.stringMatching(whoBen), 'sync'],
      ...[whoAda, 'parse with a as (insert into items values (5) returning id) select id from a', 'sync'],
    ]);
    expect(await recorded(shop)).toEqual([
      [1, ada],
      [2, ben],
      [3, ada],
      [4, ben],
      [5, ada],
    ]);
    await asAda(() => client.query("update items set note = 'x' where id = 1"));
    await asAda(() => client.query('delete from items where id = 2'));
    await client.query('delete from items where id = 3');
    expect(await recorded(shop)).toEqual([
      [1, ada],
      [2, ada],
      [3, null],
    ]);
  });

  test('outside of a transaction nothing else is attributed, and reads cost nothing', async () => {
    const shop = await openShop();
    const { client, sent } = await attributedClient(driver, shop);
    const texts = [
      'insert into items values (1); insert into items values (2)',
      'do $$ begin insert into items values (3); end $$',
      'call call_item(4)',
      'select write_item(5)',
      'select 1 for update',
    ];
    await asAda(async () => {
      for (const text of texts) await client.query(text).catch(() => {});
      const cursor = client.query(new Cursor('insert into items values (6) returning id'));
      expect(await cursor.read(5)).toEqual([{ id: 6 }]);
      await cursor.close();
      await pipeline(Readable.from(['7\n']), client.query(copyFrom('copy items (id) from stdin')));
      await client.query('truncate log');
    });
    expect(sent.filter((text) => text.startsWith('who'))).toEqual([]);
    expect(await shop.byCapture()).toEqual([1, 2, 3, 4, 5, 6, 7].map((item) => ({ item, note: null, who: null })));
  });

  test('in a transaction the setting precedes the first write of a context, and nothing else', async () => {
    const shop = await openShop();
    const { client, sent } = await attributedClient(driver, shop);
    await asAda(async () => {
      await client.query('begin');
      await client.query('set transaction isolation level repeatable read');
      for (const text of ['show timezone', "set local timezone = 'UTC'", 'lock table items', 'savepoint a'])
        await client.query(text);
      await client.query('declare c cursor for select 1');
      await client.query('fetch c');
      await client.query('select * from items for update');
      await client.query('create table items2 (id int)');
      await client.query('call call_item(1)');
      await client.query('do $$ begin insert into items values (2); end $$');
    });
    expect(sent.filter((text) => text.startsWith('who'))).toEqual([]);
    sent.length = 0;
    await asAda(async () => {
      await client.query('insert into items values (3)');
      await client.query('insert into items values ($1)', [4]);
      setContext({ context: { reason: 'r' } });
      const cursor = client.query(new Cursor('insert into items values (5) returning id'));
      expect(await cursor.read(5)).toEqual([{ id: 5 }]);
      await cursor.close();
      await pipeline(Readable.from(['6\n']), client.query(copyFrom('copy items (id) from stdin')));
    });
    await client.query('insert into items values (7)');
    await asAda(() => client.query('call call_item(8)'));
    await client.query('drop table items2');
    await client.query('commit');
    const withReason = { ...ada, context: { reason: 'r' } };
    expect(sent.filter((text) => text !== 'sync' && !text.startsWith('parse'))).toEqual([
      ...[whoAda, 'query insert into items values (3)', `who ${JSON.stringify(withReason)}`],
      ...[
        'query copy items (id) from stdin',
        'who {}',
        'query insert into items values (7)',
        'query call call_item(8)',
      ],
      ...['query drop table items2', 'query commit'],
    ]);
    expect(await recorded(shop)).toEqual([
      ...[
        [1, null],
        [2, null],
        [3, ada],
        [4, ada],
        [5, withReason],
        [6, withReason],
        [7, null],
        [8, null],
      ],
    ]);
  });

  test.each([
    ['commit', 'begin'],
    ['rollback', 'begin'],
    ['commit and chain'],
    ['rollback and chain'],
    ['rollback to a'],
    ["prepare transaction 'x'", "rollback prepared 'x'", 'begin'],
    ['end; begin'],
    ['abort', 'start transaction'],
  ])('what was set is forgotten at %s', async (...statements) => {
    const shop = await openShop();
    const { client } = await attributedClient(driver, shop);
    await asAda(async () => {
      await client.query('begin');
      await client.query('savepoint a');
      await client.query('insert into items values (1)');
      for (const statement of statements) await client.query(statement);
      await client.query('insert into items values (2)');
      await client.query('commit');
    });
    expect((await recorded(shop)).filter(([item]) => item === 2)).toEqual([[2, ada]]);
  });

  test('a savepoint that is rolled back leaves no other context to what follows', async () => {
    const shop = await openShop();
    const { client } = await attributedClient(driver, shop);
    await client.query('begin');
    await asAda(() => client.query('insert into items values (1)'));
    await client.query('savepoint a');
    await asBen(() => client.query('insert into items values (2)'));
    await expect(asBen(() => client.query('insert into items values (2)'))).rejects.toThrow('duplicate key');
    await client.query('rollback to a');
    await client.query('insert into items values (3)');
    await asBen(() => client.query('insert into items values (4)'));
    await client.query('commit');
    expect(await recorded(shop)).toEqual([
      [1, ada],
      [3, null],
      [4, ben],
    ]);
  });

  test('the context is that of the call of query(), not of its sending', async () => {
    const shop = await openShop();
    const { client } = await attributedClient(driver, shop);
    await Promise.all([
      asAda(() => client.query('insert into items values (1)')),
      asBen(() => client.query('insert into items values (2)')),
      client.query('insert into items values (3)'),
      client.query('begin'),
      asBen(() => client.query('insert into items values (4)')),
      asAda(() => client.query('insert into items values (5)')),
      client.query('insert into items values (6)'),
      client.query('commit'),
    ]);
    expect(await recorded(shop)).toEqual([
      [1, ada],
      [2, ben],
      [3, null],
      [4, ben],
      [5, ada],
      [6, null],
    ]);
  });
});
