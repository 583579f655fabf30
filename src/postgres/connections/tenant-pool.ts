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

export interface TenantPoolOptions extends Pick<PoolOptions, 'applicationName' | 'onLostConnection' | 'tracer'> {
  /** Maximum connections for the reads of tenants. One tenant has at most half of them. */
  readonly reads?: number;
  /** Maximum connections for the writes of tenants. One tenant has at most half of them. */
  readonly writes?: number;
  /** Maximum number of slow statements that read; default 4. See SlowStatements. */
  readonly slow?: number;
  /** What the connections for reading are for, in metrics and in refusals; default: `reading`. */
  readonly readsFor?: string;
  /** Connections for tenants that stay open, and that warmUp prepares; default 0. */
  readonly kept?: number;
  /** Maximum connections for the work of the process itself. */
  readonly own?: number;
  /**
   * Milliseconds after which the database itself ends a statement of a tenant, if this process has ended and cannot
   * cancel it. Default 35,000; Infinity for no limit.
   */
  readonly statementLimit?: number;
  /**
   * Milliseconds in which the server must end a statement that Annals cancels; default 5,000, other values for tests. Then
   * Annals closes the connection, and another caller gets its place.
   */
  readonly maxSilence?: number;
  /**
   * Milliseconds in which a server that owes an answer must send something. Then Annals closes the connection. Without a limit of
   * statements it asks the server first, and waits as long again if the statement is at work. Default 40,000; other values for tests.
   */
  readonly silenceLimit?: number;
}

/** Connections that tenants share by the current work (see src/core/fairness/work.ts). */
export interface TenantPool extends Statements {
  /**
   * Takes a connection from the share of the current work. Without current work, it takes one of the process's own. The
   * wait for the connection and all its statements are one step of the work. When the step's signal is aborted, Annals
   * cancels in the database what runs, and the promise rejects with the signal's reason.
   */
  connect(): Promise<TenantConnection>;
  /**
   * Opens the connections that are kept and has them carry out these statements, and later those that take their places. Behind a pooler
   * and on a cluster it does nothing: there other processes plan what a connection asks.
   */
  warmUp(statements: readonly pg.QueryConfig[]): Promise<void>;
  end(): Promise<void>;
  /** The underlying pools, for callers that count or watch the connections. */
  readonly pools: readonly pg.Pool[];
  /** The query builder reads this property but does not use it. */
  readonly options: object;
}

/** Milliseconds after which the database ends a statement of a request by itself: 5 s more than the request may take. */
export const defaultStatementLimit = 35_000;

/** Milliseconds: 5 s more than the database takes to end a statement of a request. */
export const defaultSilenceLimit = 40_000;

const defaultShares = { reads: 8, writes: 6, own: 4 };

/** As many connections as those have together who look at a part of one tenant's history: half of the tenant's, so that its own statements do not wait behind theirs. */
export function viewerReads(reads: number): number {
  return Math.max(1, Math.floor(reads / 4));
}

/** As many connections as one tenant may read with. */
export function keptOf({ reads }: { reads: number }): number {
  return Math.max(1, Math.floor(reads / 2));
}

/**
 * The shares of one of several processes on one port, which divide the connections. Each has two for reads and two for
 * writes, so that two tenants have one each. Own connections are for upkeep and jobs, which one of the processes does.
 */
export function sharesOf(processes: number): typeof defaultShares {
  const part = (connections: number) => Math.max(2, Math.ceil(connections / processes));
  return { reads: part(defaultShares.reads), writes: part(defaultShares.writes), own: defaultShares.own };
}

/**
 * During writes, at most this many reading statements start at once. The next ones start this many milliseconds later.
 * Without this limit, readers in closed loops leave a writer a third of its rate: each of its statements comes after
 * theirs.
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
  const release = (client: pg.PoolClient, destroy: boolean | Error) => warm.giveBack(client, destroy);

  /** A statement of upkeep or of an export may take as long as it takes, without a word from the server. */
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
          // Connections of the process's own never ask, so a question always gets one in the end.
          hasMovedTenants: () => hasMovedTenants(ownPool),
        }),
    );
  }

  /** A slow statement makes way for the next one to begin. */
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
    const giveBack = () => {
      for (const releasePlace of releases) releasePlace();
    };
    try {
      if (work.ofViewers) releases.push(await viewers.acquire(work.tenant, step.signal));
      if (!work.writes && shares.writes.taken() > 0) releases.push(await beginBesideWrites(work.tenant, step.signal));
      const share = work.writes ? shares.writes : shares.reads;
      releases.push(await share.acquire(work.tenant, step.signal));
      const connection = connectionOf(await shared.connect());
      if (work.writes) return connection.begin({ step, giveBack });
      const inTurn: InTurn = (text, send) => slowStatements.run(work.tenant, text, step.signal, send);
      return connection.begin({ step, giveBack, inTurn });
    } catch (error) {
      giveBack();
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
