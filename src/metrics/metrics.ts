import {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client';
import {
  type CounterName,
  type GaugeName,
  type HistogramName,
  type LabelsOf,
  type MetricName,
  metricDefinitions,
} from './definitions.ts';

/** A snapshot of a process's figures, as plain data that can be sent to another process. */
export type Figures = readonly MetricObjectWithValues<MetricValue<string>>[];

/** The metrics of a process, by the names of definitions.ts. A metric appears once it has its first value. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<CounterName, Counter>();
  readonly #gauges = new Map<GaugeName, Gauge>();
  readonly #histograms = new Map<HistogramName, Histogram>();
  readonly #collectors: (() => void | Promise<void>)[] = [];

  /** Adds to a counter. */
  count<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by = 1): void {
    this.#counters.getOrInsertComputed(name, () => new Counter(this.#configuration(name))).inc(labels, by);
  }

  /** Sets a counter that is counted elsewhere since the start of the process. */
  countTo<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    this.#counters.get(name)?.remove(labels);
    this.count(name, labels, value);
  }

  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void {
    this.#gauge(name).set(labels, value);
  }

  /** Adds to a gauge, also negative numbers. */
  add<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, by: number): void {
    this.#gauge(name).inc(labels, by);
  }

  /** Omits a gauge until it is set again. */
  clear(name: GaugeName): void {
    this.#gauges.delete(name);
    this.#registry.removeSingleMetric(name);
  }

  /** Adds a duration in seconds to a histogram. */
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, seconds: number): void {
    const made = () =>
      new Histogram({ ...this.#configuration(name), buckets: [...(metricDefinitions[name].buckets ?? [])] });
    this.#histograms.getOrInsertComputed(name, made).observe(labels, seconds);
  }

  /** Registers a function that sets gauges before each read of the figures. It must not throw. */
  beforeRead(collect: () => void | Promise<void>): void {
    this.#collectors.push(collect);
  }

  async read(): Promise<Figures> {
    await Promise.all(this.#collectors.map((collect) => collect()));
    return await this.#registry.getMetricsAsJSON();
  }

  #gauge(name: GaugeName): Gauge {
    return this.#gauges.getOrInsertComputed(name, () => new Gauge(this.#configuration(name)));
  }

  #configuration(name: MetricName) {
    const { help, labels = [], aggregation = 'sum' } = metricDefinitions[name];
    return { name, help, labelNames: [...labels], aggregator: aggregation, registers: [this.#registry] };
  }
}

/** The content type of `textOf`. */
export const contentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** The figures of one or more processes in Prometheus' text format. */
export async function textOf(figures: readonly Figures[]): Promise<string> {
  return await AggregatorRegistry.aggregate([...figures]).metrics();
}
