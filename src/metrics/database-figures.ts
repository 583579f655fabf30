import type pg from 'pg';
import { within } from '../core/fairness/deadline.ts';
import type { GaugeName, LabelsOf } from './definitions.ts';
import type { Metrics } from './metrics.ts';

/** Gauges from a query of a database. */
export interface DatabaseFigure {
  /** The gauges that `read` may set, which are omitted while it fails. */
  readonly names: readonly GaugeName[];
  read(set: SetGauge): Promise<void>;
}

type SetGauge = <Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number) => void;

interface DatabaseFiguresOptions {
  /** The gauge of whether the database answers. */
  readonly up: 'annals_database_up' | 'annals_relay_source_up';
  /** Opens the connection. Resolves once the database has answered. */
  begin(): Promise<unknown>;
  readonly figures: readonly DatabaseFigure[];
  /** Closes or releases the connection; `isLate`: a statement is still running on it. */
  end(isLate: boolean): void;
  /** Minimum milliseconds between two queries; default 10,000. */
  readonly every?: number | undefined;
  /** Maximum milliseconds of a query; default 3,000. */
  readonly deadline?: number | undefined;
}

const defaultEvery = 10_000;
const defaultDeadline = 3_000;

/**
 * Queries figures of a database when metrics are read, at most every 10 s. Late figures are omitted, so that a database
 * that is away does not block the metrics.
 */
export function measureDatabase(metrics: Metrics, options: DatabaseFiguresOptions): void {
  const { up, every = defaultEvery } = options;
  let next = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    const missing = await askOnce(metrics, options);
    metrics.set(up, {}, missing === undefined ? 0 : 1);
    if (up === 'annals_database_up')
      metrics.set('annals_database_figures_missing', {}, missing ?? options.figures.length);
  }

  metrics.beforeRead(async () => {
    if (performance.now() >= next) {
      asking ??= ask().finally(() => {
        asking = undefined;
        next = performance.now() + every;
      });
    }
    await asking;
  });
}

/** Returns the number of missing figures; undefined if the database does not answer. */
async function askOnce(
  metrics: Metrics,
  { begin, end, figures, deadline = defaultDeadline }: DatabaseFiguresOptions,
): Promise<number | undefined> {
  const until = performance.now() + deadline;
  // Timers may fire slightly early.
  const isLate = () => performance.now() > until - 2;
  const inTime = <Result>(work: Promise<Result>) => within(Math.max(1, until - performance.now()), work);
  let isUp = false;
  let missing = 0;
  try {
    await inTime(begin());
    isUp = true;
  } catch {
    // The gauge of `options.up` reports it.
  }
  for (const { names, read } of figures) {
    const values: (() => void)[] = [];
    try {
      if (!isUp || isLate()) throw new Error('the database has used its time');
      await inTime(read((name, labels, value) => void values.push(() => metrics.set(name, labels, value))));
    } catch {
      missing += 1;
      values.length = 0;
    }
    for (const name of names) metrics.clear(name);
    for (const set of values) set();
  }
  end(isLate());
  return isUp ? missing : undefined;
}

/** Measures the connections of pools to the database. Pools of the same name are added up. */
export function measureConnections(metrics: Metrics, pools: Readonly<Record<string, readonly pg.Pool[]>>): void {
  metrics.beforeRead(() => {
    for (const [pool, ofName] of Object.entries(pools)) {
      const sum = (count: (of: pg.Pool) => number) => ofName.map(count).reduce((total, value) => total + value, 0);
      const idle = sum(({ idleCount }) => idleCount);
      metrics.set('annals_database_connections', { pool, state: 'idle' }, idle);
      metrics.set('annals_database_connections', { pool, state: 'used' }, sum(({ totalCount }) => totalCount) - idle);
      metrics.set(
        'annals_database_connections_max',
        { pool },
        sum(({ options }) => options.max),
      );
      metrics.set(
        'annals_database_connections_waiting',
        { pool },
        sum(({ waitingCount }) => waitingCount),
      );
    }
  });
}
