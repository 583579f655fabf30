import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import type { Tracer } from '../../../src/core/trace.ts';
import { readSource } from '../../../src/postgres/source/source.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { capture } from '../../../src/sources/capture/capture.ts';
import type { StartChoice } from '../../../src/sources/capture/capture-options.ts';
import { CaptureFigures } from '../../../src/sources/capture/slot.ts';
import type { SourceLog } from '../../../src/sources/source-log.ts';
import { createTestDatabaseForThisTest, type TestDatabase } from '../../support/server/database.ts';
import {
  createSourceDatabase,
  dropSourceDatabase,
  emptySourceDatabase,
  openSourceDatabase,
  type SourceDatabase,
  type SourceServer,
  startSourceServer,
} from '../../support/server/source-server.ts';
import { tenant, useHistory } from '../history.ts';

export { tenant };

/** A database of Annals for this test alone, with the tenant. */
export async function createHistory(): Promise<TestDatabase> {
  const database = await createTestDatabaseForThisTest();
  await createTenant(database.db, tenant);
  return database;
}

/**
 * The databases that the tests of a file use one after the other. Each test finds them empty, but for the tenant in the
 * history.
 */
export interface CaptureDatabases {
  openSource(): SourceDatabase;
  /** Another database of the same server, for this test alone. */
  openSecondSource(): Promise<SourceDatabase>;
  openHistory(): TestDatabase;
}

/** For the top of a test file. */
export function useCaptureDatabases(): CaptureDatabases {
  let server: SourceServer;
  let source: SourceDatabase;
  const openHistory = useHistory();
  beforeAll(async () => {
    server = await startSourceServer();
    source = await openSourceDatabase(server);
  });
  afterAll(async () => {
    await dropSourceDatabase(server, source);
    await server.close();
  });
  return {
    openSource() {
      onTestFinished(() => emptySourceDatabase(source));
      return source;
    },
    openSecondSource: () => createSourceDatabase(server),
    openHistory,
  };
}

export interface RunningCapture {
  /** Resolves when capture reads the log, with the tables that it records; rejects where it ends before. */
  running: Promise<readonly string[]>;
  ended: Promise<void>;
  figures: CaptureFigures;
  /** The messages of the log. */
  messages: string[];
  logged: { fields: unknown; message: string }[];
  stop(): Promise<void>;
}

export interface CaptureSetup {
  source: SourceDatabase;
  history: TestDatabase;
  /** Tables of the mapping, or the whole of it. */
  tables?: Record<string, object>;
  mapping?: object;
  choice?: Partial<StartChoice>;
  strict?: boolean;
  url?: string;
  now?: () => number;
  heartbeat?: number;
  tracer?: Tracer;
}

/** Captures in this process until the test ends. */
export function startCapture({ source, history, tables, mapping, choice, ...setup }: CaptureSetup): RunningCapture {
  const controller = new AbortController();
  const messages: string[] = [];
  const logged: RunningCapture['logged'] = [];
  const keep = (fields: unknown, message: string) => {
    messages.push(message);
    logged.push({ fields, message });
  };
  const log: SourceLog = { info: keep, warn: keep };
  const figures = new CaptureFigures();
  const { promise: running, resolve, reject } = Promise.withResolvers<readonly string[]>();
  running.catch(() => {});
  const now = setup.now ?? Date.now;
  const sealer = createSealer([Buffer.alloc(32)]);
  const rules = readMapping(JSON.stringify(mapping ?? { version: 1, tenant: { value: tenant }, tables }));
  const ended = capture({
    source: readSource(setup.url ?? source.url),
    db: history.db,
    mapping: rules,
    slot: source.slot,
    choice: { snapshot: false, resync: false, acceptGap: false, alter: false, ...choice },
    strict: setup.strict ?? false,
    sealer,
    recordBatch: createBatchRecorder({ sealer, now, people: rules.people }),
    log,
    signal: controller.signal,
    figures,
    tracer: setup.tracer,
    ...(setup.heartbeat === undefined ? {} : { heartbeat: setup.heartbeat }),
    onRunning: resolve,
  });
  ended.then(
    () => reject(new Error('capture ended')),
    (error) => reject(error),
  );
  const stop = async () => {
    controller.abort();
    await ended.catch(() => {});
  };
  onTestFinished(stop);
  return { running, ended, figures, messages, logged, stop };
}

/** A source with one table `orders`, and a capture of it that runs. */
export async function captureOrders(
  databases: CaptureDatabases,
  definition = 'create table orders (id int primary key, title text, total numeric); alter table orders replica identity full',
  rules: object = { entity: 'order' },
) {
  const source = databases.openSource();
  await source.pool.query(definition);
  const history = databases.openHistory();
  const setup = { source, history, tables: { 'public.orders': rules } };
  const running = startCapture(setup);
  await running.running;
  return { source, history, setup, running };
}
