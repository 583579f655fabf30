import type { FastifyBaseLogger } from 'fastify';
import type pg from 'pg';
import { type Config, embeddedFolder } from '../core/config/config.ts';
import { productVersion } from '../core/package-folder.ts';
import { createSealer, type Sealer } from '../core/sealing.ts';
import type { Tracer } from '../core/trace.ts';
import type { CompletionTimes } from '../desk/completions/service.ts';
import { jobPlaces } from '../desk/jobs/dispatcher.ts';
import { createLogger } from '../http/logger.ts';
import { measureConnections } from '../metrics/database-figures.ts';
import { Metrics } from '../metrics/metrics.ts';
import { openTracer } from '../metrics/open-tracer.ts';
import { measureProcess } from '../metrics/process.ts';
import type { HttpClient } from '../outbound/http-client.ts';
import { createPaginator, type Paginator } from '../pagination/paginator.ts';
import { createPool } from '../postgres/connections/pool.ts';
import { createTenantPool, keptOf, sharesOf, type TenantPool } from '../postgres/connections/tenant-pool.ts';
import { createDatabase, type Database } from '../postgres/database.ts';
import { RegexMatcherPool } from '../query/regex-pool.ts';
import { measureInstallation } from './installation-figures.ts';

/** Maximum milliseconds of a statement of `vital`. */
export const vitalStatementLimit = 10_000;

/** All connections of a process to its database, except those of the metrics. */
interface Connections {
  /** Connections that tenants share. */
  pool: TenantPool;
  db: Database;
  /** Connections for what every call needs: only quick statements, so that no slow statement delays them. */
  vital: { pool: pg.Pool; db: Database };
  exports: { pool: TenantPool; db: Database };
  close(): Promise<void>;
}

interface ConnectionsOptions {
  databaseUrl: string;
  /** The number of processes on one port, which share the database. */
  processes: number;
  onLostConnection: (error: Error) => void;
  tracer: Tracer | undefined;
}

/** Creates the pools, which open connections on demand. */
function createConnections({ databaseUrl, processes, onLostConnection, tracer }: ConnectionsOptions): Connections {
  const shares = sharesOf(processes);
  const pool = createTenantPool(databaseUrl, { onLostConnection, tracer, ...shares, kept: keptOf(shares) });
  const vitalPool = createPool(databaseUrl, {
    onLostConnection,
    maximum: 2,
    statementLimit: vitalStatementLimit,
    tracer,
  });
  // An export keeps its connection until it ends. A tenant has one at a time, which may read all the time.
  const exportLimits = {
    reads: jobPlaces.EXPORT.places,
    writes: 0,
    slow: jobPlaces.EXPORT.places,
    readsFor: 'exports',
    statementLimit: Number.POSITIVE_INFINITY,
  };
  const exportsPool = createTenantPool(databaseUrl, { onLostConnection, tracer, ...exportLimits });
  const connections = {
    pool,
    db: createDatabase(pool),
    vital: { pool: vitalPool, db: createDatabase(vitalPool) },
    exports: { pool: exportsPool, db: createDatabase(exportsPool) },
  };
  return {
    ...connections,
    async close() {
      await Promise.all([connections, connections.vital, connections.exports].map(({ db }) => db.destroy()));
    },
  };
}

export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Milliseconds of a monotonic clock. */
  elapsed(): number;
}

/** One of several processes on a port, which divide connections and memory. */
export interface WorkerName {
  /** From 1 to `of`. The replacement of a dead worker has its number. */
  number: number;
  of: number;
}

export interface ContextOptions {
  config: Config;
  databaseUrl: string;
  /** 32 bytes each. The first key seals; every key opens. */
  secretKeys: readonly Uint8Array[];
  /** Default: the only process on its port. */
  worker?: WorkerName | undefined;
  /** For tests: overrides of the settings. */
  overrides?: {
    clock?: Clock;
    logger?: FastifyBaseLogger;
    completionTimes?: CompletionTimes;
    /** The folder of the console's built page. */
    consoleFolder?: string | undefined;
    /** Where programs sign in without a public address. */
    loopbackUrl?: string | undefined;
    /** Reads the metadata documents of programs that sign in. */
    programClient?: Pick<HttpClient, 'send'> | undefined;
  };
}

/** What no module owns and every module may use. */
export interface Foundation {
  config: Config;
  clock: Clock;
  logger: FastifyBaseLogger;
  /** Connections that tenants share. */
  pool: TenantPool;
  db: Database;
  /** Connections for what every call needs: only quick statements, so that no slow statement delays them. */
  vital: { pool: pg.Pool; db: Database };
  exports: Connections['exports'];
  sealer: Sealer;
  paginator: Paginator;
  regexes: RegexMatcherPool;
  /** Undefined if traces are not exported. */
  tracer: Tracer | undefined;
  /** Undefined if metrics are not served. */
  metrics: Metrics | undefined;
}

/** Creates the foundation. Adds to `closing` what closes it. */
export async function createFoundation(options: ContextOptions, closing: AsyncDisposableStack): Promise<Foundation> {
  const { config, databaseUrl, secretKeys, worker, overrides = {} } = options;
  const clock = overrides.clock ?? { now: () => Date.now(), elapsed: () => performance.now() };
  const logger = overrides.logger ?? createLogger(config.logLevel, undefined, worker?.number);
  const tracer = await openTracer(config.traces, logger);
  closing.defer(async () => await tracer?.close());
  const { close, ...connections } = createConnections({
    databaseUrl,
    processes: worker?.of ?? 1,
    onLostConnection: (error) => logger.warn({ err: error }, 'a connection to the database was lost'),
    tracer,
  });
  closing.defer(close);
  const regexes = new RegexMatcherPool();
  const metrics = config.metrics === undefined ? undefined : createMetrics(connections);
  if (metrics !== undefined && worker === undefined)
    closing.defer(measureInstallation(metrics, databaseUrl, embeddedFolder(config)));
  const sealer = createSealer(secretKeys);
  const paginator = createPaginator({ sealer, now: () => clock.now() });
  return { config, clock, logger, ...connections, sealer, paginator, regexes, tracer, metrics };
}

function createMetrics({ pool, vital, exports }: Omit<Connections, 'close'>): Metrics {
  const metrics = new Metrics();
  measureProcess(metrics, productVersion());
  const [shared = [], own = []] = pool.pools.map((part) => [part]);
  measureConnections(metrics, { shared, own, vital: [vital.pool], exports: exports.pool.pools });
  return metrics;
}
