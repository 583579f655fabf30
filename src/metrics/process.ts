import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { shareFigures } from '../core/fairness/semaphore.ts';
import type { Metrics } from './metrics.ts';

/** Minimum milliseconds of a measurement of the event loop's delay, so that two scrapers see the same. */
const delayPeriod = 10_000;
/** Milliseconds between two samples of the delay. */
const resolution = 20;

/** Measures processor time, memory and event loop of this process, and the use of its shares. */
export function measureProcess(metrics: Metrics, version: string): void {
  metrics.set('annals_info', { version }, 1);
  metrics.set('annals_process_start_time_seconds', {}, performance.timeOrigin / 1000);
  const measureDelay = watchDelay(metrics);
  metrics.beforeRead(() => {
    const { user, system } = process.cpuUsage();
    metrics.countTo('annals_process_cpu_seconds_total', { mode: 'user' }, user / 1e6);
    metrics.countTo('annals_process_cpu_seconds_total', { mode: 'system' }, system / 1e6);
    const { rss, heapUsed, external } = process.memoryUsage();
    metrics.set('annals_process_resident_memory_bytes', {}, rss);
    metrics.set('annals_process_heap_used_bytes', {}, heapUsed);
    metrics.set('annals_process_heap_limit_bytes', {}, getHeapStatistics().heap_size_limit);
    metrics.set('annals_process_external_memory_bytes', {}, external);
    measureDelay();
    measureShares(metrics);
  });
}

function watchDelay(metrics: Metrics): () => void {
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  let begun = performance.now();
  // The histogram has the time between two samples, in nanoseconds.
  const late = (between: number) => Math.max(0, between / 1e9 - resolution / 1e3);
  return () => {
    metrics.countTo('annals_event_loop_busy_seconds_total', {}, performance.eventLoopUtilization().active / 1e3);
    if (delays.count > 0) {
      metrics.set('annals_event_loop_delay_p50_seconds', {}, late(delays.percentile(50)));
      metrics.set('annals_event_loop_delay_p99_seconds', {}, late(delays.percentile(99)));
      metrics.set('annals_event_loop_delay_max_seconds', {}, late(delays.max));
    }
    if (performance.now() - begun < delayPeriod) return;
    delays.reset();
    begun = performance.now();
  };
}

function measureShares(metrics: Metrics): void {
  for (const { name: share, places, taken, waiting } of shareFigures()) {
    if (places !== Number.POSITIVE_INFINITY) metrics.set('annals_share_places', { share }, places);
    metrics.set('annals_share_used', { share }, taken);
    metrics.set('annals_share_waiting', { share }, waiting);
  }
}
