import { createRequire } from 'node:module';
import { runWithContext } from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { decodePgoutput } from '../../../src/sources/capture/pgoutput.ts';
import { readTransactionInfo } from '../../../src/sources/transaction-info.ts';
import {
  dropSourceDatabase,
  openSourceDatabase,
  type SourceDatabase,
  type SourceServer,
  startSourceServer,
} from '../../support/server/source-server.ts';
import { sentBy } from './sent.ts';

/** The copies of pg that attribution is tested with. */
export const drivers: readonly [version: string, driver: typeof pg][] = [
  ['the current version', pg],
  ['8.11', createRequire(import.meta.url)('pg-8-11')],
];

/** A change of `items`, and who made it. */
export interface Recorded {
  item: number;
  note: string | null;
  /** What annals.who said, as a JSON value; null: nothing. */
  who: unknown;
}

/** An application's database: a table `items`, whose changes a trigger and a replication slot record. */
export interface Shop {
  readonly url: string;
  /** Without attribution. */
  readonly pool: pg.Pool;
  /** What triggers saw of each change since the last call, in its order. */
  byTriggers(): Promise<Recorded[]>;
  /** What the log says of each committed change since the last call, by its transaction and its place there. */
  byCapture(): Promise<Recorded[]>;
}

const definition = `
  create table items (id int primary key, note text);
  create table log (place bigserial, item int, note text, who text);
  create function log_item() returns trigger language plpgsql as $$ begin
    insert into log (item, note, who) values (coalesce(new.id, old.id), new.note, nullif(current_setting('annals.who', true), ''));
    return null; end $$;
  create trigger log after insert or update or delete on items for each row execute function log_item();
  create function write_item(int, text = null) returns int language sql as 'insert into items values ($1, $2) returning id';
  create procedure call_item(int, text = null) language sql as 'insert into items values ($1, $2)';
  create publication items for table items`;

/** To be called at the top of a file. A test calls what it returns, once, and finds the tables empty. */
export function useShop(): () => Promise<Shop> {
  let server: SourceServer;
  let database: SourceDatabase;
  beforeAll(async () => {
    server = await startSourceServer();
    database = await openSourceDatabase(server);
    await database.pool.query(definition);
    await database.pool.query(`select pg_create_logical_replication_slot($1, 'pgoutput')`, [database.slot]);
  });
  afterAll(async () => {
    await dropSourceDatabase(server, database);
    await server.close();
  });
  return async () => {
    const { pool, slot, url } = database;
    const reset = async () => {
      await pool.query('drop table if exists later; truncate items, log restart identity');
      await pool.query('select pg_replication_slot_advance($1, pg_current_wal_lsn())', [slot]);
    };
    await reset();
    return { url, pool, byTriggers: () => byTriggers(pool), byCapture: () => byCapture(pool, slot) };
  };
}

/** A pool of this driver, ended with the test. */
export function poolOf(driver: typeof pg, { url }: Pick<Shop, 'url'>, config: pg.PoolConfig = {}): pg.Pool {
  const pool = new driver.Pool({ connectionString: url, max: 4, ...config });
  pool.on('error', () => {});
  onTestFinished(() => pool.end());
  return pool;
}

/** A connected client of this driver, ended with the test. */
export async function clientOf(driver: typeof pg, { url }: Pick<Shop, 'url'>, config: object = {}): Promise<pg.Client> {
  const client = new driver.Client({ connectionString: url, ...config });
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

async function byTriggers(pool: pg.Pool): Promise<Recorded[]> {
  const { rows } = await pool.query<{ item: number; note: string | null; who: string | null }>(
    'with read as (delete from log returning *) select item, note, who from read order by place',
  );
  return rows.map(({ item, note, who }) => ({ item, note, who: read(who) }));
}

async function byCapture(pool: pg.Pool, slot: string): Promise<Recorded[]> {
  const { rows } = await pool.query<{ data: Buffer }>(
    `select data from pg_logical_slot_get_binary_changes($1, null, null,
       'proto_version', '1', 'publication_names', 'items', 'messages', 'true')`,
    [slot],
  );
  const found: Recorded[] = [];
  let who: unknown = null;
  for (const { data } of rows) {
    const message = decodePgoutput(data);
    if (message.kind === 'begin') who = null;
    if (message.kind === 'message' && message.prefix === 'annals.who') who = read(message.content.toString());
    const tuple = message.kind === 'insert' || message.kind === 'update' ? message.new : undefined;
    const old = message.kind === 'delete' ? (message.key ?? message.old) : undefined;
    const [id, note] = tuple ?? old ?? [];
    if (id !== undefined) found.push({ item: Number(id), note: note ?? null, who });
  }
  return found;
}

/** Only what Annals itself can read counts. */
function read(text: string | null): unknown {
  if (text === null) return null;
  if (readTransactionInfo(text) === undefined) return `unreadable: ${text}`;
  const value: unknown = JSON.parse(text);
  return Object.keys(value as object).length === 0 ? null : value;
}

export const ada = { actor: 'Ada', actorId: 'u-1' };
export const ben = { actor: 'Ben', onBehalfOf: { name: 'Acme', id: 'c-1' }, context: { reason: 'ü ☃ 😀' } };
export const whoAda = `who ${JSON.stringify(ada)}`;
export const asAda = <T>(fn: () => T) => runWithContext(ada, fn);
export const asBen = <T>(fn: () => T) => runWithContext(ben, fn);

/** What triggers saw, by item, after it was checked that capture sees the same. */
export async function recorded(shop: Shop): Promise<[item: number, who: unknown][]> {
  const byItem = (changes: Recorded[]) =>
    changes.map(({ item, who }): [number, unknown] => [item, who]).sort(([a], [b]) => a - b);
  const seen = byItem(await shop.byTriggers());
  expect(byItem(await shop.byCapture())).toEqual(seen);
  return seen;
}

/** An attributed client whose server is known to take the setting, and what it sends from now on. */
export async function attributedClient(driver: typeof pg, shop: Pick<Shop, 'url'>, config: object = {}) {
  const client = attribute(await clientOf(driver, shop, config));
  // The first transaction probes the server.
  await client.query('begin');
  await client.query('rollback');
  return { client, sent: sentBy(client) };
}

/** What the application sees of a query. */
export async function outcomeOf(run: () => Promise<unknown>): Promise<unknown> {
  const members = ['name', 'message', 'code', 'detail', 'position', 'severity', 'constraint', 'table', 'where', 'hint'];
  const plain = (one: unknown) => {
    const { _parsers, _types, _prebuiltEmptyResultObject, RowCtor, ...seen } = one as Record<string, unknown>;
    return seen;
  };
  try {
    const result = await run();
    return Array.isArray(result) ? result.map(plain) : plain(result);
  } catch (error) {
    return Object.fromEntries(members.map((member) => [member, Reflect.get(error as object, member)]));
  }
}
