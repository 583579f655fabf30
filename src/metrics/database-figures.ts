import { within } from '../core/fairness/deadline.ts';
import type { GaugeName, LabelsOf } from './definitions.ts';
import type { Metrics } from './metrics.ts';

/** Gauges that one statement of a database gives. */
export interface DatabaseFigure {
  /** The gauges that `read` may set. They are left out while it fails. */
  readonly names: readonly GaugeName[];
  read(set: SetGauge): Promise<void>;
}

export type SetGauge = <Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number) => void;

export interface DatabaseFiguresOptions {
  /** The gauge that tells whether the database answers. */
  readonly up: 'annals_database_up' | 'annals_relay_source_up';
  /** Opens the connection. Resolves once the database has answered. */
  begin(): Promise<unknown>;
  readonly figures: readonly DatabaseFigure[];
  /** Closes the connection, or gives it back; `isLate` where a statement still runs on it. */
  end(isLate: boolean): void;
  /** Milliseconds from one time that the database is asked to the next, at least; default 10,000. */
  readonly every?: number | undefined;
  /** Milliseconds that the database has; default 3,000. */
  readonly deadline?: number | undefined;
}

const defaultEvery = 10_000;
const defaultDeadline = 3_000;

/**
 * Asks a database for figures when metrics are read, at most each 10 s. What does not come in time is left out: a database
 * that is away stops no reading.
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

/** Returns how many figures are missing; undefined where the database does not answer. */
async function askOnce(
  metrics: Metrics,
  { begin, end, figures, deadline = defaultDeadline }: DatabaseFiguresOptions,
): Promise<number | undefined> {
  const until = performance.now() + deadline;
  // A timer may come a moment early.
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
