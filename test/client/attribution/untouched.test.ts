import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { currentContext, runWithContext } from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import { describe, expect, test } from 'vitest';
import { shared } from '../../../clients/typescript/src/context/shared.ts';
import { sentBy } from './sent.ts';
import {
  ada,
  asAda,
  asBen,
  attributedClient,
  ben,
  clientOf,
  drivers,
  outcomeOf,
  poolOf,
  recorded,
  useShop,
  whoAda,
} from './shop.ts';

const openShop = useShop();

const queries: [what: string, query: unknown][] = [
  ['a row', 'insert into items values (1) returning *'],
  ['no row', "update items set note = 'x' where id = 77"],
  ['values', { text: 'insert into items values ($1, $2) returning *', values: [2, null] }],
  ['a name', { name: 'n', text: 'insert into items values ($1)', values: [3] }],
  ['the name again', { name: 'n', text: 'insert into items values ($1)', values: [3] }],
  ['the name for another text', { name: 'n', text: 'insert into items values ($1, null)', values: [3] }],
  ['arrays for rows', { text: "insert into items values (4, 'x') returning note, id", rowMode: 'array' }],
  ['several statements', 'insert into items values (5); insert into items values (6) returning id'],
  ['a semicolon at the end', 'insert into items values (7); -- and a comment;'],
  ['an error of the syntax', 'insert into items valuse (7)'],
  ['an error of the syntax, with a name', { name: 'm', text: 'insert into items valuse ($1)', values: [7] }],
  ['a missing table', { text: 'insert into nothing values ($1)', values: [7] }],
  ['a duplicate', 'insert into items values (99)'],
  ['a parameter without a value', 'insert into items values ($1)'],
  ['too many values', { text: 'delete from items where id = $1', values: [1, 2] }],
  ['a value that does not fit', { text: 'delete from items where id = $1', values: ['one'] }],
  ['values that are no array', { text: 'delete from items where id = $1', values: 'one' }],
  ['a name that is known, without a text', { name: 'n', values: [8] }],
  ['an error while it runs', 'insert into items select 1 / (10 - n) from generate_series(9, 11) n'],
  ['a text that scans as one statement', "insert into items values (12, 'x\\'); select 'y'"],
  ['a timeout', { text: 'insert into items select 9 from pg_sleep(60)' }],
  ['a deferred constraint', 'insert into later values (1, 1)'],
  ['rows, one at a time', { text: 'insert into items values (14), (15) returning id', rows: 1 }],
  ['nothing', ''],
  ['a comment', '-- insert into items values (20)'],
];

describe.each(drivers)('with pg %s', (_version, driver) => {
  test('results and errors are those of a client without attribution', async () => {
    const shop = await openShop();
    await shop.pool.query(`drop table if exists later; create table later (id int primary key, next int,
      constraint next foreign key (next) references items deferrable initially deferred)`);
    const prepare = 'set standard_conforming_strings = on';
    const plain = await clientOf(driver, shop);
    const { client, sent } = await attributedClient(driver, shop);
    for (const connected of [plain, client]) await connected.query(prepare);
    for (const wrap of [false, true]) {
      for (const [what, query] of queries) {
        const of = async (connected: typeof client) => {
          if (what === 'a timeout') await connected.query('set statement_timeout = 300');
          if (wrap) await connected.query('begin');
          const seen = await outcomeOf(() => connected.query(query as never));
          if (wrap) await connected.query('rollback');
          if (what === 'a timeout') await connected.query('reset statement_timeout');
          return seen;
        };
        const afresh = () => shop.pool.query('truncate items cascade; insert into items values (99)');
        await afresh();
        const expected = await of(plain);
        await afresh();
        expect(await asAda(() => of(client)), `${what}, ${wrap ? 'in' : 'outside of'} a transaction`).toEqual(expected);
      }
    }
    expect(sent.filter((text) => text === whoAda).length).toBeGreaterThan(20);
  });

  test('notices are those of the statement, once and in order', async () => {
    const shop = await openShop();
    await shop.pool.query(`create or replace function noisy() returns trigger language plpgsql as $$
      begin raise notice 'trigger %', new.id; return new; end $$;
      drop trigger if exists noisy on items; create trigger noisy before insert on items for each row execute function noisy()`);
    const { client } = await attributedClient(driver, shop);
    const notices: string[] = [];
    client.on('notice', ({ message }) => notices.push(String(message)));
    await client.query('set client_min_messages = debug1; set debug_print_parse = on; set log_min_messages = debug1');
    notices.length = 0;
    let next = 1;
    const seen = async (run: (text: string) => Promise<unknown>) => {
      notices.length = 0;
      await run(`insert into items values (${next++})`);
      return notices.map((text) => text.replaceAll(/\d+/g, 'n'));
    };
    // The functions of the triggers are parsed once.
    await client.query(`insert into items values (${next++})`);
    for (const start of ['select 1', 'begin'])
      for (const values of [[], [7]]) {
        await client.query(start);
        const run = (text: string) =>
          client.query(values.length === 0 ? text : text.replace(')', ' + 100 * $1)'), values);
        const expected = await seen(run);
        expect(expected).toContain('trigger n');
        expect(await seen((text) => asAda(() => run(text)))).toEqual(expected);
        await client.query('rollback');
      }
    await shop.pool.query('drop trigger noisy on items');
  });

  test('a server that refuses the setting gets it never again, with one warning', async () => {
    const shop = await openShop();
    const role = `app_${process.pid}_${driver === drivers[0]?.[1] ? 'a' : 'b'}`;
    await shop.pool.query(`create role ${role} login password 'app'; grant all on items, log, log_place_seq to ${role};
      revoke execute on function pg_logical_emit_message(bool, text, text${await flushArgument(shop)}) from public`);
    shared.warned.clear();
    const warnings: Error[] = [];
    const keep = (warning: Error) => void warnings.push(warning);
    process.on('warning', keep);
    try {
      const url = new URL(shop.url);
      Object.assign(url, { username: role, password: 'app' });
      for (const first of ['insert into items values (1)', 'begin']) {
        const client = attribute(await clientOf(driver, { url: url.href }));
        const sent = sentBy(client);
        await asAda(async () => {
          await client.query(first);
          await client.query('insert into items values (2)');
          await client.query('delete from items');
        });
        expect(sent.filter((text) => text.startsWith('who'))).toHaveLength(first === 'begin' ? 0 : 1);
        if (first === 'begin') await client.query('commit');
      }
      const setting = attribute(await clientOf(driver, { url: url.href }), { capture: false });
      await asAda(() => setting.query('insert into items values (3)'));
      expect((await shop.byTriggers()).at(-1)).toMatchObject({ item: 3, who: ada });
      await new Promise(setImmediate);
      expect(warnings.map(({ message }) => message).filter((text) => text.includes('42501'))).toHaveLength(1);
    } finally {
      process.off('warning', keep);
      await shop.pool.query(`grant execute on function pg_logical_emit_message(bool, text, text${await flushArgument(shop)}) to public;
        drop owned by ${role}; drop role ${role}`);
    }
  });

  test('a connection that the server ends says why', async () => {
    const shop = await openShop();
    const { client } = await attributedClient(driver, shop);
    const plain = await clientOf(driver, shop);
    const endOf = async (one: typeof client) => {
      const { rows } = await one.query('select pg_backend_pid() as pid');
      await one.query('begin');
      const running = asAda(() => one.query('insert into items select 1 from pg_sleep(60)')).catch((error) => error);
      while (
        (
          await shop.pool.query("select 1 from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'", [
            rows[0].pid,
          ])
        ).rowCount === 0
      );
      await shop.pool.query('select pg_terminate_backend($1)', [rows[0].pid]);
      const { message, code } = await running;
      return { message, code };
    };
    expect(await endOf(client)).toEqual(await endOf(plain));
  });

  test('callbacks, events and promises see the context of their query, and no other storage changes', async () => {
    const shop = await openShop();
    const other = new AsyncLocalStorage<string>();
    class Client extends driver.Client {}
    attribute(Client);
    // The connection is opened in the context of somebody else.
    const client = await other.run('first', () =>
      asBen(() => clientOf(Object.assign({ ...driver, Client }) as typeof driver, shop)),
    );
    const seen: unknown[] = [];
    const note = () => void seen.push([currentContext()?.actor, other.getStore()]);
    await other.run('second', () =>
      asAda(async () => {
        await new Promise<void>((resolve) => {
          client.query('insert into items values (1)', () => {
            note();
            client.query('insert into items values ($1)', [2], () => {
              note();
              resolve();
            });
          });
        });
        const query = new driver.Query('insert into items values (3) returning id');
        client.query(query);
        query.on('row', note);
        await once(query.on('end', note), 'end');
        await client.query('insert into items values (4)');
        note();
      }),
    );
    expect(seen.map((one) => (one as unknown[])[0])).toEqual(['Ada', 'Ada', 'Ada', 'Ada', 'Ada']);
    expect(seen.at(-1)).toEqual(['Ada', 'second']);
    const notified = new Promise((resolve) => {
      client.on('notification', () => resolve(currentContext()));
    });
    await asAda(() => client.query('listen x'));
    await asAda(() => client.query('notify x'));
    expect(await notified).toBeUndefined();
    expect(await recorded(shop)).toEqual([
      [1, ada],
      [2, ada],
      [3, ada],
      [4, ada],
    ]);
  });

  test('who waits for a client of a pool keeps the own context', async () => {
    const shop = await openShop();
    const pool = attribute(poolOf(driver, shop, { max: 1 }));
    class Client extends driver.Client {}
    attribute(Client);
    const unknown = poolOf(driver, shop, { max: 1, Client });
    const runs: Promise<unknown>[] = [];
    for (let item = 1; item <= 40; item++) {
      const run = () =>
        item % 4 === 0
          ? pool
              .connect()
              .then((client) => client.query(`insert into items values (${item})`).finally(() => client.release()))
          : pool.query(`insert into items values (${item})`);
      runs.push(item % 3 === 0 ? run() : item % 3 === 1 ? asAda(run) : asBen(run));
      const callback = () => {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        unknown.connect((error, client, release) => {
          if (error) return reject(error);
          void client?.query(`insert into items values (${100 + item})`, (failure) => {
            release();
            if (failure) reject(failure);
            else resolve();
          });
        });
        return promise;
      };
      runs.push(item % 2 === 0 ? asAda(callback) : asBen(callback));
    }
    await Promise.all(runs);
    const seen = await recorded(shop);
    expect(seen.filter(([item]) => item <= 40)).toEqual(
      Array.from({ length: 40 }, (_, index) => [index + 1, [ada, ben, null][index % 3]]),
    );
    // A pool that is not attributed calls back in a context that may be another's: then there is none.
    expect(seen.filter(([item]) => item > 100).map(([, who]) => who)).toEqual(Array.from({ length: 40 }, () => null));
  });

  test('a value that cannot be converted fails as without attribution, and leaves no transaction open', async () => {
    const shop = await openShop();
    const value = {
      toPostgres() {
        throw new Error('mine');
      },
    };
    const query = { text: 'insert into items values ($1)', values: [value] };
    const { client } = await attributedClient(driver, shop);
    const { rows } = await client.query('select pg_backend_pid() as pid');
    await expect(asAda(() => client.query(query))).rejects.toThrow('mine');
    const state = 'select state, xact_start from pg_stat_activity where pid = $1';
    await expect
      .poll(async () => (await shop.pool.query(state, [rows[0].pid])).rows)
      .toEqual([{ state: 'idle', xact_start: null }]);
    // 8.11 itself never goes on after that.
    if (driver !== drivers[1]?.[1]) await asAda(() => client.query('insert into items values (1)'));
    else (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
    expect(await recorded(shop)).toEqual(driver === drivers[1]?.[1] ? [] : [[1, ada]]);
  });

  test('a context that throws costs the actor alone', async () => {
    const shop = await openShop();
    const { client } = await attributedClient(driver, shop);
    const context = {
      get actor(): string {
        throw new Error('mine');
      },
    };
    await runWithContext(context, () => client.query('insert into items values (1)'));
    expect(await recorded(shop)).toEqual([[1, null]]);
  });

  test('attribute takes what has a meaning, and twice is once', async () => {
    const shop = await openShop();
    for (const target of [undefined, null, {}, 'pg', () => {}, { query() {} }])
      expect(() => attribute(target)).toThrow(TypeError);
    const { client, sent } = await attributedClient(driver, shop);
    attribute(client);
    await asAda(() => client.query('insert into items values (1)'));
    expect(sent.filter((text) => text === whoAda)).toHaveLength(1);
    expect(() => client.query(undefined as never)).toThrow('null or undefined query');
  });
});

async function flushArgument({ pool }: { pool: import('pg').Pool }): Promise<string> {
  const { rows } = await pool.query<{ n: number }>(
    "select max(pronargs) as n from pg_proc where proname = 'pg_logical_emit_message'",
  );
  return rows[0]?.n === 4 ? ', bool' : '';
}
