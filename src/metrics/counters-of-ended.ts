import type { Figures } from './metrics.ts';

type Figure = Figures[number];
type Value = Figure['values'][number];

/**
 * Keeps the counters of ended processes. Otherwise the sum over all processes would decrease, which Prometheus takes
 * for a reset of the counter, and would count everything of the other processes again.
 */
export class CountersOfEnded {
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
export function countersOf(figures: Figures): Figures {
  return figures.filter(({ type }) => String(type) !== 'gauge');
}

/** A histogram has several values of the same labels: its buckets, sum and count. */
function nameOf(value: Value): unknown {
  return 'metricName' in value ? value.metricName : undefined;
}
