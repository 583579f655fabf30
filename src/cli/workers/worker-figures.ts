import type { Figures } from '../../metrics/metrics.ts';

/** Milliseconds that a worker has to send its figures. */
const defaultWait = 2_000;

/** Collects the workers' figures. Counters of late or ended workers keep their values, so that no sum decreases. */
export class WorkerFigures {
  readonly #maxWait: number;
  readonly #waiting = new Map<number, (figures: Figures) => void>();
  /** By the number of the worker's process. */
  readonly #last = new Map<number, Figures>();
  readonly #ended = new CountersOfEnded();
  #lastId = 0;

  /** `maxWait` is in milliseconds. */
  constructor(maxWait = defaultWait) {
    this.#maxWait = maxWait;
  }

  /** `ask` sends a message with the id to the worker. */
  async read(workers: readonly number[], ask: (worker: number, id: number) => void): Promise<Figures[]> {
    const received = new Map<number, Figures>();
    const ids: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const worker of workers) {
      this.#lastId += 1;
      const id = this.#lastId;
      ids.push(id);
      this.#waiting.set(id, (figures) => {
        received.set(worker, figures);
        this.#last.set(worker, figures);
        if (received.size === workers.length) resolve();
      });
      ask(worker, id);
    }
    const timer = setTimeout(resolve, workers.length === 0 ? 0 : this.#maxWait);
    await promise;
    clearTimeout(timer);
    for (const id of ids) this.#waiting.delete(id);
    const late = [...this.#last].filter(([worker]) => !received.has(worker)).map(([, figures]) => countersOf(figures));
    return [...received.values(), ...late, this.#ended.figures];
  }

  take(id: number, figures: Figures): void {
    this.#waiting.get(id)?.(figures);
  }

  /** Call when the process of a worker has ended. */
  end(worker: number): void {
    const figures = this.#last.get(worker);
    this.#last.delete(worker);
    if (figures !== undefined) this.#ended.add(figures);
  }
}

type Figure = Figures[number];
type Value = Figure['values'][number];

/**
 * Keeps the counters of ended processes. Otherwise the sum over all processes would decrease, which Prometheus takes
 * for a reset of the counter, and would count everything of the other processes again.
 */
class CountersOfEnded {
  readonly #kept = new Map<string, { figure: Figure; values: Map<string, Value> }>();

  /** Adds the last figures of a process. */
  add(figures: Figures): void {
    for (const figure of countersOf(figures)) {
      const kept = this.#kept.getOrInsertComputed(figure.name, () => ({ figure, values: new Map() }));
      for (const value of figure.values) {
        const key = JSON.stringify([nameOf(value), Object.entries(value.labels).sort()]);
        const sum = (kept.values.get(key)?.value ?? 0) + value.value;
        kept.values.set(key, { ...value, value: sum });
      }
    }
  }

  get figures(): Figures {
    return [...this.#kept.values()].map(({ figure, values }) => ({ ...figure, values: [...values.values()] }));
  }
}

/** The counters and histograms of the figures. */
function countersOf(figures: Figures): Figures {
  return figures.filter(({ type }) => String(type) !== 'gauge');
}

/** A histogram has several values of the same labels: its buckets, sum and count. */
function nameOf(value: Value): unknown {
  return 'metricName' in value ? value.metricName : undefined;
}
