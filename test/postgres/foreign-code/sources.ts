import pg from 'pg';
import { expect, test } from 'vitest';
import { beginSource, connectSource, readSource } from '../../../src/postgres/source/source.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { checkMappingAt } from '../../../src/sources/capture/check-mapping.ts';
import { removeCapture } from '../../../src/sources/capture/setup.ts';
import { removeOutbox } from '../../../src/sources/outbox/outbox-schema.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { createHistory, startCapture, tenant } from '../../sources/capture/captured.ts';
import { startRelay } from '../../sources/outbox/relayed.ts';
import { entriesOf } from '../../support/server/entries.ts';
import { foreignCalls, hostileTemplate, lookInPublicFirst, onPlainPath } from '../../support/server/foreign-code.ts';
import { eventually } from '../../support/server/patience.ts';
import { createSourceDatabase, type SourceDatabase, type SourceServer } from '../../support/server/source-server.ts';

const mapping = {
  version: 1,
  tenant: { value: tenant },
  tables: {
    'shop.orders': { entity: 'order', name: 'title', mask: ['card'], ignore: ['note'], json: ['options'] },
    'shop.lines': { entity: 'line', id: ['order_id', 'number'], related: [{ entity: 'order', id: ['order_id'] }] },
  },
};

/** An application in a schema of its own, in a database where anybody may put code before PostgreSQL's. */
async function hostileSource(server: SourceServer): Promise<SourceDatabase> {
  const source = await createSourceDatabase(server, hostileTemplate);
  await onPlainPath(source.url, (client) =>
    client.query(`create schema shop;
    create type shop.size as (height int, width int);
    create table shop.orders (id int primary key, title text, card text, note text, options text, size shop.size, tags text[]);
    create table shop.lines (order_id int, number int, amount numeric, primary key (order_id, number)) partition by range (order_id);
    create table shop.lines_1 partition of shop.lines for values from (0) to (1000);
    alter table shop.orders replica identity full`),
  );
  await lookInPublicFirst(source.url);
  return source;
}

const change = `insert into shop.orders values (1, 'one', '4111', 'x', '{"a": 1}', '(1,2)', '{a,b}');
  insert into shop.lines values (1, 1, 2.50); update shop.orders set title = 'two'; delete from shop.lines; truncate shop.orders`;

/** Runs SQL as psql does, with a session as the database gives it to a superuser. */
async function asSuperuser({ url }: SourceDatabase, sql: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/** The database of an application. The server has the planted code. */
export function sourceTests(server: () => SourceServer): void {
  test('the SQL of the outbox, its triggers and the relay call nothing of those who may create in a schema', {
    timeout: 120_000,
  }, async () => {
    const source = await hostileSource(server());
    const history = await createHistory();
    const sql = outboxSql(readMapping(JSON.stringify(mapping)));
    await asSuperuser(source, sql);
    await asSuperuser(source, sql);
    await onPlainPath(source.url, (client) => client.query(change));
    const relay = startRelay({ url: source.url, history, mapping });
    await eventually(() => entriesOf(history)).toHaveLength(5);
    await relay.stop();
    await asSuperuser(source, removeOutbox);
    expect(await foreignCalls(source.url)).toEqual([]);
  });

  test('capture, its comparison with the tables and mapping check call nothing of those who may create in a schema', {
    timeout: 120_000,
  }, async () => {
    const source = await hostileSource(server());
    const history = await createHistory();
    await onPlainPath(source.url, (client) => client.query(`insert into shop.orders values (7, 'seven')`));
    const setup = { source, history, mapping, heartbeat: 50 };
    const first = startCapture({ ...setup, choice: { snapshot: true, alter: true } });
    await first.running;
    await onPlainPath(source.url, (client) => client.query(change));
    await eventually(() => entriesOf(history)).toHaveLength(8);
    await first.stop();
    const second = startCapture({ ...setup, choice: { resync: true } });
    await second.running;
    await second.stop();
    const reports = await checkMappingAt(readMapping(JSON.stringify(mapping)), readSource(source.url));
    expect(reports.map(({ missing }) => missing)).toEqual([[], []]);
    expect(await removeCapture(readSource(source.url), source.slot)).toEqual({ slot: true, publication: true });
    expect(await foreignCalls(source.url)).toEqual([]);
  });

  test('a source whose settings do not arrive, as behind a pooler that drops them, is refused by all but the relay', async () => {
    const { url } = await createSourceDatabase(server());
    await expect(connectSource({ url }, 'statements')).rejects.toThrow('connect to it directly');
    await (await connectSource(readSource(url), 'statements')).end();
    const client = await connectSource({ url }, 'transactions');
    await beginSource(client);
    expect((await client.query('show search_path')).rows).toEqual([{ search_path: 'pg_catalog, pg_temp' }]);
    await client.end();
  });
}
