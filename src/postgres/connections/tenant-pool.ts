import type pg from 'pg';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { currentWork } from '../../core/fairness/work.ts';
import type { StopSignal } from '../../core/stop-signal.ts';
import { isDistributed } from '../is-distributed.ts';
import type { Statements } from '../statements.ts';
import { hasMovedTenants } from '../tenant-moved.ts';
import { createCanceller } from './canceller.ts';
import { createPool, type PoolOptions } from './pool.ts';
import { isBehindPooler } from './pooler.ts';
import { SlowStatements } from './slow-statements.ts';
import { type InTurn, TenantConnection } from './tenant-connection.ts';
import { maxSilence as defaultSilence } from './unreachable.ts';
import { WarmConnections } from './warm-connections.ts';

interface TenantPoolOptions extends Pick<PoolOptions, 'applicationName' | 'onLostConnection' | 'tracer'> {
  /** Maximum connections for reads of tenants; one tenant has at most half. */
  readonly reads?: number;
  /** Maximum connections for writes of tenants; one tenant has at most half. */
  readonly writes?: number;
  /** Maximum concurrent slow reads; default 4. See SlowStatements. */
  readonly slow?: number;
  /** The purpose of the connections for reads, in metrics and refusals; default: `reading`. */
  readonly readsFor?: string;
  /** Connections for tenants that stay open, and that warmUp prepares; default 0. */
  readonly kept?: number;
  /** Maximum connections for the process's own work. */
  readonly own?: number;
  /**
   * Milliseconds after which the database ends a tenant's statement by itself, in case this process can no longer
   * cancel it. Default 35,000; Infinity for no limit.
   */
  readonly statementLimit?: number;
  /**
   * Milliseconds in which the server must end a cancelled statement, before the connection is closed and its place
   * freed. Default 5,000; other values for tests.
   */
  readonly maxSilence?: number;
  /**
   * Milliseconds in which a server that owes an answer must send something, before the connection is closed. Without a
   * limit of statements, the wait is extended while the server is executing the statement. Default 40,000; other values
   * for tests.
   */
  readonly silenceLimit?: number;
}

/** Connections that tenants share by the current work (see src/core/fairness/work.ts). */
export interface TenantPool extends Statements {
  /**
   * Takes a connection from the share of the current work; without one, of the process's own. The wait for the
   * connection and all its statements are one step of the work. When the step's signal is aborted, the running
   * statement is cancelled in the database, and the promise rejects with the signal's reason.
   */
  connect(): Promise<TenantConnection>;
  /**
   * Opens the kept connections and runs these statements on them, and later on their replacements. Does nothing behind
   * a pooler or on a cluster, where other processes plan the statements.
   */
  warmUp(statements: readonly pg.QueryConfig[]): Promise<void>;
  end(): Promise<void>;
  /** The underlying pools, for metrics. */
  readonly pools: readonly pg.Pool[];
  /** The query builder reads this property but does not use it. */
  readonly options: object;
}

/** Milliseconds: 5 s more than the limit of a request. */
export const defaultStatementLimit = 35_000;

/** Milliseconds: 5 s more than the limit of a statement. */
export const defaultSilenceLimit = 40_000;

const defaultShares = { reads: 8, writes: 6, own: 4 };

/** Connections for the reads of a tenant's viewers: half of the tenant's, so that they never block its own. */
export function viewerReads(reads: number): number {
  return Math.max(1, Math.floor(reads / 4));
}

/** Connections for the reads of one tenant. */
export function keptOf({ reads }: { reads: number }): number {
  return Math.max(1, Math.floor(reads / 2));
}

/**
 * The shares of one of several processes on a port, which divide the connections. Each has at least two for reads and
 * two for writes, so that two tenants get one each. Own connections are for upkeep and jobs, which one of the processes
 * does.
 */
export function sharesOf(processes: number): typeof defaultShares {
  const part = (connections: number) => Math.max(2, Math.ceil(connections / processes));
  return { reads: part(defaultShares.reads), writes: part(defaultShares.writes), own: defaultShares.own };
}

/**
 * During writes, only so many reads start at once; each lets the next start after so many milliseconds. Otherwise
 * readers in closed loops leave a writer a third of its rate, since each of its statements queues behind theirs.
 */
export const readsBesideWrites = { places: 2, milliseconds: 20 };

export function createTenantPool(url: string, options: TenantPoolOptions = {}): TenantPool {
  const { reads, writes, own } = { ...defaultShares, ...options };
  const { applicationName, onLostConnection, statementLimit = defaultStatementLimit, readsFor = 'reading' } = options;
  const { maxSilence = defaultSilence, silenceLimit = defaultSilenceLimit } = options;
  const pooled = isBehindPooler(url);
  const kept = pooled ? 0 : (options.kept ?? 0);
  const common = {
    ...(applicationName === undefined ? {} : { applicationName }),
    ...(onLostConnection === undefined ? {} : { onLostConnection }),
    tracer: options.tracer,
    silenceLimit,
  };
  const shared = createPool(url, {
    ...common,
    maximum: reads + writes,
    kept,
    statementLimit,
    isAtWork: statementLimit === Number.POSITIVE_INFINITY ? isAtWork : undefined,
  });
  const ownPool = createPool(url, { ...common, maximum: own, connectionLimit: 60_000, isAtWork });
  const warm = new WarmConnections({ pool: shared, kept });
  const shares = {
    reads: new Semaphore({ places: reads, name: `connections for ${readsFor}` }),
    writes: new Semaphore({ places: writes, name: 'connections for writing' }),
  };
  const viewers = new Semaphore({ maxOfTenant: viewerReads(reads) });
  const besideWrites = new Semaphore({
    places: readsBesideWrites.places,
    ...(writes === 0 ? {} : { name: 'statements that read beside writes' }),
  });
  const slowStatements = new SlowStatements(options.slow);
  const canceller = createCanceller({
    connectionString: url,
    application_name: applicationName ?? 'annals',
    connectionTimeoutMillis: maxSilence,
  });
  const connections = new WeakMap<pg.PoolClient, TenantConnection>();
  const release = (client: pg.PoolClient, destroy: boolean | Error) => warm.release(client, destroy);

  /** Statements of upkeep and exports may be silent for any time. */
  async function isAtWork(client: pg.PoolClient): Promise<boolean> {
    return await canceller.isAtWork(connectionOf(client).running);
  }

  function connectionOf(client: pg.PoolClient): TenantConnection {
    return connections.getOrInsertComputed(
      client,
      () =>
        new TenantConnection(client, {
          canceller,
          pooled,
          maxSilence,
          release,
          // Only tenants' connections call this, so it cannot exhaust the process's own.
          hasMovedTenants: () => hasMovedTenants(ownPool),
        }),
    );
  }

  /** A slow statement lets the next one begin. */
  async function beginBesideWrites(tenant: string, signal: StopSignal): Promise<() => void> {
    const releasePlace = await besideWrites.acquire(tenant, signal);
    const timer = setTimeout(releasePlace, readsBesideWrites.milliseconds);
    return () => {
      clearTimeout(timer);
      releasePlace();
    };
  }

  async function connect(): Promise<TenantConnection> {
    const work = currentWork();
    if (work === undefined) return connectionOf(await ownPool.connect()).begin({});
    const step = work.beginStep();
    const releases: (() => void)[] = [];
    const onRelease = () => {
      for (const releasePlace of releases) releasePlace();
    };
    try {
      if (work.ofViewers) releases.push(await viewers.acquire(work.tenant, step.signal));
      if (!work.writes && shares.writes.taken() > 0) releases.push(await beginBesideWrites(work.tenant, step.signal));
      const share = work.writes ? shares.writes : shares.reads;
      releases.push(await share.acquire(work.tenant, step.signal));
      const connection = connectionOf(await shared.connect());
      if (work.writes) return connection.begin({ step, onRelease });
      const inTurn: InTurn = (text, send) => slowStatements.run(work.tenant, text, step.signal, send);
      return connection.begin({ step, onRelease, inTurn });
    } catch (error) {
      onRelease();
      step.end();
      throw error;
    }
  }

  return {
    connect,
    options: {},
    pools: [shared, ownPool],

    async query<Row extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<Row>> {
      const connection = await connect();
      try {
        return await connection.query<Row>(statement);
      } finally {
        connection.release();
      }
    },

    async warmUp(statements) {
      if (pooled || (await isDistributed(ownPool))) return;
      await warm.open(statements);
    },

    async end() {
      await Promise.all([shared.end(), ownPool.end()]);
      await canceller.close();
    },
  };
}
