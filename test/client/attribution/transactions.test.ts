import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setContext } from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import {
  ada,
  asAda,
  asBen,
  attributedClient,
  ben,
  clientOf,
  drivers,
  poolOf,
  recorded,
  useShop,
  whoAda,
} from './shop.ts';

const openShop = useShop();

describe.each(drivers)('with pg %s', (_version, driver) => {
  test('attribute.transaction covers CALL, DO and functions, and ends as its function does', async () => {
    const shop = await openShop();
    const pool = attribute(poolOf(driver, shop, { max: 1 }));
    const result = await asAda(() =>
      attribute.transaction(pool, async (client) => {
        await client.query('call call_item(1)');
        await client.query('select write_item($1)', [2]);
        setContext({ context: { reason: 'r' } });
        await client.query('do $$ begin insert into items values (3); end $$');
        return 'done';
      }),
    );
    expect(result).toBe('done');
    const failed = asBen(() =>
      attribute.transaction(pool, async (client) => {
        await client.query('call call_item(4)');
        throw new Error('mine');
      }),
    );
    await expect(failed).rejects.toThrow('mine');
    const swallowed = asBen(() =>
      attribute.transaction(pool, async (client) => {
        await client.query('call call_item(5)');
        await client.query('call call_item(1)').catch(() => {});
      }),
    );
    await expect(swallowed).rejects.toThrow('rolled back');
    // It does not cover the connection's next transaction.
    await asBen(async () => {
      const client = await pool.connect();
      await client.query('begin');
      await client.query('call call_item(6)');
      await attribute.transaction(client, () => client.query('call call_item(7)'));
      await client.query('commit');
      client.release();
    });
    expect(await recorded(shop)).toEqual([
      ...[
        [1, ada],
        [2, ada],
        [3, { ...ada, context: { reason: 'r' } }],
        [6, null],
        [7, ben],
      ],
    ]);
    await expect(attribute.transaction(await clientOf(driver, shop), async () => {})).rejects.toThrow(TypeError);
  });

  test('a setting that fails in a transaction gives its error to the statement that it precedes', async () => {
    const shop = await openShop();
    // Nothing but a refusal makes a setting fail at will.
    const role = `weak_${randomBytes(4).toString('hex')}`;
    await shop.pool.query(
      `create role ${role} login password 'app'; grant all on items, log, log_place_seq to ${role}`,
    );
    const url = new URL(shop.url);
    Object.assign(url, { username: role, password: 'app' });
    const { client, sent } = await attributedClient(driver, { url: url.href });
    await shop.pool.query('revoke execute on function set_config(text, text, bool) from public');
    try {
      await client.query('begin');
      await expect(asAda(() => client.query('insert into items values (1)'))).rejects.toMatchObject({
        code: '42501',
        message: 'permission denied for function set_config',
      });
      await expect(client.query('select 1')).rejects.toMatchObject({ code: '25P02' });
      await client.query('rollback');
      // Then it is known to be refused.
      await client.query('begin');
      await asAda(() => client.query('insert into items values (1)'));
      await client.query('commit');
      expect(sent.filter((text) => text === whoAda)).toHaveLength(1);
    } finally {
      await client.end();
      await shop.pool.query(`grant execute on function set_config(text, text, bool) to public;
        drop owned by ${role}; drop role ${role}`);
    }
  });

  test('a transaction that may not write fails as without attribution', async () => {
    const shop = await openShop();
    const { client } = await attributedClient(driver, shop);
    const plain = await clientOf(driver, shop);
    const fault = async (one: typeof client, ...statements: string[]) => {
      for (const statement of statements) await one.query(statement);
      return await asAda(() => one.query('insert into items values (1)')).catch(({ code, message }) => ({
        code,
        message,
      }));
    };
    for (const statements of [['begin read only'], ['rollback', 'set default_transaction_read_only = on'], ['begin']]) {
      const expected = await fault(plain, ...statements);
      expect(expected).toMatchObject({ code: '25006' });
      expect(await fault(client, ...statements)).toEqual(expected);
    }
  });
});

test('in pipeline mode a transaction is attributed, and nothing outside of one', async () => {
  const shop = await openShop();
  const { client, sent } = await attributedClient(pg, shop, { pipeline: true });
  const outcomes = await Promise.allSettled([
    asAda(() => client.query('insert into items values (1)')),
    client.query('begin'),
    asAda(() => client.query('insert into items values (2) returning id')),
    asAda(() => client.query('insert into items values ($1)', [3])),
    asBen(() => client.query('insert into items values (4)')),
    client.query('insert into items values (5)'),
    client.query('commit'),
    asBen(() => client.query('insert into items values (6)')),
    client.query('begin'),
    asBen(() => client.query('insert into items values (7)')),
    client.query('savepoint a'),
    asAda(() => client.query('insert into items values (7)')),
    client.query('rollback to a'),
    client.query('insert into items values (8)'),
    asBen(() => client.query('insert into items values (9)')),
    client.query('end'),
    client.query('select 1 as one'),
  ]);
  expect(outcomes.map((one) => (one.status === 'rejected' ? one.reason.code : one.value.rowCount))).toEqual([
    ...[1, null, 1, 1, 1, 1, null, 1, null, 1, null, '23505', null, 1, 1, null, 1],
  ]);
  expect(await recorded(shop)).toEqual([
    ...[
      [1, null],
      [2, ada],
      [3, ada],
      [4, ben],
      [5, null],
      [6, null],
      [7, ben],
      [8, null],
      [9, ben],
    ],
  ]);
  expect(sent.filter((text) => text === whoAda)).toHaveLength(2);
});

test.each(drivers)('with pg %s a client that was used before is attributed', async (_version, driver) => {
  const shop = await openShop();
  // Another client has shown that the server takes the setting.
  await attributedClient(driver, shop);
  const open = async (...statements: string[]) => {
    const client = await clientOf(driver, shop);
    for (const statement of statements) await client.query(statement);
    return attribute(client);
  };
  const idle = await open('select version()');
  await asAda(() => idle.query('insert into items values (1)'));
  const busy = await open('begin');
  await asAda(() => busy.query('insert into items values (2)'));
  await busy.query('insert into items values (3)');
  await asBen(() => attribute.transaction(busy, () => busy.query('call call_item(4)')));
  await busy.query('commit');
  expect(await recorded(shop)).toEqual([
    [1, ada],
    [2, ada],
    [3, null],
    [4, ben],
  ]);
});

test('the statement of the guide says who, by hand', async () => {
  const shop = await openShop();
  const guide = await readFile(new URL('../../../docs/recording/who.md', import.meta.url), 'utf8');
  const [, statement = ''] = /```sql\n(select .*?);\n```/s.exec(guide) ?? [];
  const client = await clientOf(pg, shop);
  await client.query(statement, [JSON.stringify(ben)]);
  await client.query('insert into items values (1)');
  await client.query('begin');
  await client.query(statement, [JSON.stringify(ada)]);
  await client.query('insert into items values (2)');
  await client.query('commit');
  expect(await recorded(shop)).toEqual([
    [1, null],
    [2, ada],
  ]);
});
