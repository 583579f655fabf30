import pg from 'pg';
import { onTestFinished } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import type { Tracer } from '../../../src/core/trace.ts';
import { readSource } from '../../../src/postgres/source/source.ts';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../../src/sources/outbox/outbox-sql.ts';
import { recordDirectly, relay } from '../../../src/sources/outbox/relay.ts';
import { createEmptyTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { tenant } from '../history.ts';

export interface Application {
  /** The URL of its owner, a superuser. */
  url: string;
  pool: pg.Pool;
  history: TestDatabase;
  mapping: object;
  /** Runs the SQL of annals outbox. */
  install(): Promise<void>;
}

/** A database of an application, with tables and a mapping of them. It is dropped when the test ends. */
export async function createApplication(
  history: TestDatabase,
  definition: string,
  tables: object,
  rest: object = {},
): Promise<Application> {
  const database = await createEmptyTestDatabase();
  const url = new URL(database.url);
  url.username = 'postgres';
  const pool = new pg.Pool({ connectionString: url.href, max: 8 });
  pool.on('error', () => {});
  onTestFinished(async () => {
    await pool.end();
    // The relay's sessions are a superuser's, which another role may not end.
    await dropAsSuperuser(url);
    await database.drop();
  });
  await pool.query(definition);
  const mapping = { version: 1, tenant: { value: tenant }, tables, ...rest };
  const install = async () => {
    await pool.query(outboxSql(readMapping(JSON.stringify(mapping))));
  };
  await install();
  return { url: url.href, pool, history, mapping, install };
}

async function dropAsSuperuser(url: URL): Promise<void> {
  const client = new pg.Client(Object.assign(new URL(url), { pathname: 'postgres' }).href);
  await client.connect();
  await client.query(`drop database if exists ${url.pathname.slice(1)} with (force)`);
  await client.end();
}

/** Relays in this process until the test ends. */
export function startRelay(
  { url, history, mapping }: Pick<Application, 'url' | 'history' | 'mapping'>,
  tracer?: Tracer,
) {
  const controller = new AbortController();
  const messages: string[] = [];
  const keep = (_fields: unknown, message: string) => void messages.push(message);
  const recordBatch = createBatchRecorder({ sealer: createSealer([Buffer.alloc(32)]), now: Date.now });
  const { promise: running, resolve } = Promise.withResolvers<void>();
  const ended = relay({
    source: readSource(url),
    mapping: readMapping(JSON.stringify(mapping)),
    record: recordDirectly({ db: history.db, recordBatch, name: 'outbox', strict: false }),
    log: { info: keep, warn: keep },
    tracer,
    lookInterval: 50,
    signal: controller.signal,
    onRunning: resolve,
  });
  ended.catch(() => {});
  const stop = async () => {
    controller.abort();
    await ended.catch(() => {});
  };
  onTestFinished(stop);
  return { running, ended, messages, stop };
}
