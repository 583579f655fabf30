import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import pg from 'pg';
import { OperatorError } from '../../../src/core/errors.ts';
import { createSealer } from '../../../src/core/sealing.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { readSource } from '../../../src/postgres/source/source.ts';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { capture } from '../../../src/sources/capture/capture.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { recordDirectly, relay } from '../../../src/sources/outbox/relay.ts';
import type { SourceLog } from '../../../src/sources/source-log.ts';
import {
  applicationRole,
  markerPattern,
  type RandomApplication,
  type Statement,
} from '../oracle/application-arbitrary.ts';

export interface ObservedWorld {
  /** A superuser's URL of the server with the application's databases; for capture with `wal_level = logical`. */
  readonly url: string;
  readonly history: Database;
  readonly tenant: string;
}

export type ObservedWay = 'triggers' | 'capture';

/** Milliseconds until everything must be recorded. */
const patience = 60_000;
const lastTable = 'law_end';

export async function prepareObservedServer({ url }: Pick<ObservedWorld, 'url'>): Promise<void> {
  await administer(
    url,
    `do $$ begin create role ${applicationRole}; exception when duplicate_object then null; end $$`,
  );
}

/**
 * Runs the application in two databases, of which Annals observes one. Returns what it found to be different there, and
 * what it found of masked values; nothing where the law holds.
 */
export async function runObservedLaw(
  world: ObservedWorld,
  application: RandomApplication,
  way: ObservedWay,
): Promise<string[]> {
  const suffix = randomBytes(6).toString('hex');
  const [twin, observed] = [`law_twin_${suffix}`, `law_seen_${suffix}`];
  const faults: string[] = [];
  const clients: pg.Client[] = [];
  let observer: Observer | undefined;
  try {
    for (const name of [twin, observed]) {
      await administer(world.url, `create database ${name}`);
      // Ends a statement that would never return, so that the law fails.
      const client = new pg.Client({ connectionString: databaseUrl(world.url, name), statement_timeout: patience });
      client.on('error', (error) =>
        faults.push(`the connection of ${name === twin ? 'the twin' : 'the application'} ended: ${error.message}`),
      );
      await client.connect();
      clients.push(client);
      for (const statement of [...application.definition, `create table ${lastTable} (id int primary key)`])
        await outcome(client, { text: statement, isSafe: false }, name);
      if (name === observed) observer = await observe(world, name, client, application, way);
    }
    const [plain, seen] = clients as [pg.Client, pg.Client];
    for (const transaction of application.transactions) {
      for (const statement of [...transaction, ...afterwards]) {
        const expected = await outcome(plain, statement, twin);
        const found = await outcome(seen, statement, observed);
        if (expected !== found) faults.push(`${statement.text}\n  came: ${found}\n  expected: ${expected}`);
      }
    }
    for (const reading of application.readings) {
      const expected = await rowsOf(plain, reading);
      const found = await rowsOf(seen, reading);
      if (expected !== found) faults.push(`${reading}\n  came: ${found}\n  expected: ${expected}`);
    }
    faults.push(...((await observer?.finish(seen)) ?? []));
    return faults;
  } finally {
    await observer?.stop();
    for (const client of clients) await client.end().catch(() => {});
    for (const name of [twin, observed]) await dropDatabase(world.url, name);
  }
}

// A transaction may have failed, been left open or been prepared.
const afterwards = ['rollback', `commit prepared 'observed'`, 'discard all', `set statement_timeout = ${patience}`].map(
  (text) => ({ text, isSafe: false }),
);

/** What the application learns of a statement: its SQLSTATE, or its command and the number of rows. */
async function outcome(client: pg.Client, { text, isSafe }: Statement, database: string): Promise<string> {
  if (isSafe) await client.query('savepoint here').catch(() => {});
  try {
    // The names of prepared transactions are the server's.
    const { command, rowCount } = await client.query(text.replace("'observed'", `'${database}'`));
    return `${command} ${rowCount}`;
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    if (isSafe) await client.query('rollback to here').catch(() => {});
    return `SQLSTATE ${error.code}`;
  }
}

async function rowsOf(client: pg.Client, reading: string): Promise<string> {
  try {
    return JSON.stringify((await client.query<{ row: string }>(reading)).rows);
  } catch (error) {
    if (error instanceof pg.DatabaseError) return `${error.code}`;
    throw error;
  }
}

interface Observer {
  /**
   * Waits until everything is recorded. Returns the masked values that were found, and why not everything could be
   * recorded.
   */
  finish(application: pg.Client): Promise<string[]>;
  stop(): Promise<void>;
}

async function observe(
  world: ObservedWorld,
  name: string,
  client: pg.Client,
  application: RandomApplication,
  way: ObservedWay,
): Promise<Observer> {
  const last: { id?: unknown; entity: string } = { entity: lastTable };
  // What cannot be mapped: its definition has failed, or it has no key.
  const { rows } = await client.query<{ name: string; has_key: boolean; persistence: string }>(
    `select 'public.' || relname as name, exists (select from pg_index where indrelid = c.oid and indisprimary) as has_key,
            relpersistence as persistence
       from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  );
  const mapped = Object.entries<{ id?: unknown }>({ ...application.tables, [`public.${lastTable}`]: last }).filter(
    ([table, { id }]) => {
      const found = rows.find((row) => row.name === table);
      return (
        found !== undefined && (id !== undefined || found.has_key) && (way === 'triggers' || found.persistence === 'p')
      );
    },
  );
  const watched = new Watched();
  return way === 'triggers'
    ? await observeByTriggers(world, name, client, Object.fromEntries(mapped), watched)
    : await observeByCapture(world, name, Object.fromEntries(mapped), watched);
}

/** Everything that leaves the application's database, searched for what must not. */
class Watched {
  readonly faults: string[] = [];
  hasLast = false;
  readonly recordBatch;
  readonly log: SourceLog;

  constructor() {
    const sealer = createSealer([Buffer.alloc(32)]);
    const recordBatch = createBatchRecorder({ sealer, now: Date.now });
    this.recordBatch = async (...args: Parameters<typeof recordBatch>) => {
      for (const change of args[1].changes) {
        const lines = 'source' in change ? change.source.line() : undefined;
        this.look('a change', `${inspect(change, { depth: 20, maxStringLength: null })} ${lines}`);
        if (change.kind === 'change' && change.change.entity === lastTable) this.hasLast = true;
      }
      return await recordBatch(...args);
    };
    const keep = (fields: unknown, message: string) =>
      this.look('the log', `${message} ${inspect(fields, { depth: 10 })}`);
    this.log = { info: keep, warn: keep };
  }

  look(where: string, text: string): void {
    const found = markerPattern.exec(text);
    if (found !== null)
      this.faults.push(
        `a masked value is in ${where}: ${text.slice(Math.max(0, found.index - 500), found.index + 500)}`,
      );
  }
}

async function observeByTriggers(
  { url, history, tenant }: ObservedWorld,
  name: string,
  client: pg.Client,
  tables: object,
  watched: Watched,
): Promise<Observer> {
  const mapping = readMapping(JSON.stringify({ version: 1, tenant: { value: tenant }, tables }));
  await client.query(outboxSql(mapping));
  const controller = new AbortController();
  let ended: Promise<void> | undefined;
  return {
    async finish(application) {
      const { rows } = await application.query<{ row: string }>('select (o.*)::text as row from annals.outbox as o');
      for (const { row } of rows) watched.look('the outbox', row);
      ended = relay({
        source: readSource(databaseUrl(url, name)),
        mapping,
        record: recordDirectly({ db: history, recordBatch: watched.recordBatch, name: 'law', strict: false }),
        log: watched.log,
        signal: controller.signal,
      });
      ended.catch((error) => watched.faults.push(`the relay ended: ${error}`));
      const deadline = performance.now() + patience;
      for (;;) {
        const { rows: left } = await application.query('select from annals.outbox where lane >= 0 limit 1');
        if (left.length === 0) break;
        if (performance.now() > deadline) {
          watched.faults.push('the relay does not empty the outbox');
          break;
        }
        await sleep(50);
      }
      return watched.faults;
    },
    async stop() {
      controller.abort();
      await ended?.catch(() => {});
    },
  };
}

async function observeByCapture(
  { url, history, tenant }: ObservedWorld,
  name: string,
  tables: Readonly<Record<string, object>>,
  watched: Watched,
): Promise<Observer> {
  let left = tables;
  for (;;) {
    const controller = new AbortController();
    const { promise: running, resolve, reject } = Promise.withResolvers<void>();
    const ended = capture({
      source: readSource(databaseUrl(url, name)),
      db: history,
      mapping: readMapping(JSON.stringify({ version: 1, tenant: { value: tenant }, tables: left })),
      slot: name,
      choice: { snapshot: false, resync: false, acceptGap: true, alter: true },
      strict: false,
      recordBatch: watched.recordBatch,
      log: watched.log,
      signal: controller.signal,
      heartbeat: 100,
      onRunning: () => resolve(),
    });
    ended.then(() => reject(new Error('capture ended')), reject);
    try {
      await running;
    } catch (error) {
      // A table that capture refuses is left out.
      const refused = Object.keys(left).filter(
        (table) => error instanceof OperatorError && error.message.includes(table),
      );
      if (refused.length === 0) throw error;
      left = Object.fromEntries(Object.entries(left).filter(([table]) => !refused.includes(table)));
      continue;
    }
    let reason: unknown;
    ended.catch((error) => {
      reason = error;
    });
    return {
      async finish(application) {
        await application.query(`insert into ${lastTable} values (1)`);
        const deadline = performance.now() + patience;
        while (!watched.hasLast && reason === undefined) {
          if (performance.now() > deadline) {
            watched.faults.push('capture does not reach the last change');
            break;
          }
          await sleep(20);
        }
        // Where an operator must decide, capture ends with a message.
        if (reason !== undefined) watched.look('the error of capture', `${reason}`);
        if (reason !== undefined && !(reason instanceof OperatorError))
          watched.faults.push(`capture ended: ${inspect(reason)}`);
        return watched.faults;
      },
      async stop() {
        controller.abort();
        await ended.catch(() => {});
      },
    };
  }
}

function databaseUrl(url: string, name: string): string {
  return Object.assign(new URL(url), { pathname: name }).href;
}

async function administer(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function dropDatabase(url: string, name: string): Promise<void> {
  const slots = `do $$ begin
    for i in 1..100 loop
      begin
        perform pg_drop_replication_slot(slot_name) from pg_replication_slots where database = '${name}';
        exit;
      exception when object_in_use then perform pg_sleep(0.05);
      end;
    end loop;
  end $$`;
  await administer(url, slots, `drop database if exists ${name} with (force)`);
}
