import { expect, test } from 'vitest';
import { WorkerFigures } from '../../src/cli/workers/worker-figures.ts';
import { type Figures, Metrics, textOf } from '../../src/metrics/metrics.ts';

const route = '/usage/:tenant';
const requests = `annals_http_requests_total{route="${route}",method="GET",status="200"}`;
const seconds = `annals_http_request_duration_seconds_sum{route="${route}",method="GET"}`;
const quick = `annals_http_request_duration_seconds_bucket{le="0.1",route="${route}",method="GET"}`;
const inFlight = 'annals_http_requests_in_flight';
const heap = 'annals_process_heap_used_bytes';

/** A worker that has answered so many requests of half a second and has one under way. */
function worker(answered: number, heapUsed: number): Metrics {
  const metrics = new Metrics();
  metrics.set('annals_http_requests_in_flight', {}, 1);
  metrics.set('annals_process_heap_used_bytes', {}, heapUsed);
  for (let request = 0; request < answered; request++) {
    metrics.count('annals_http_requests_total', { route, method: 'GET', status: '200' });
    metrics.observe('annals_http_request_duration_seconds', { route, method: 'GET' }, 0.5);
  }
  return metrics;
}

function valuesOf(text: string): Record<string, number> {
  const named = [requests, seconds, quick, inFlight, heap].map((name) => {
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
    return [name, line === undefined ? Number.NaN : Number(line.slice(name.length + 1))] as const;
  });
  return Object.fromEntries(named);
}

test('the figures of workers are one, and no counter falls when a worker is silent or has ended', async () => {
  const workers = new Map([
    [1, worker(3, 10)],
    [2, worker(4, 30)],
  ]);
  const figures = new WorkerFigures(50);
  const silent = new Set<number>();
  const read = async () => {
    const gathered: Figures[] = await figures.read([...workers.keys()], (id, message) => {
      if (!silent.has(id))
        void workers
          .get(id)
          ?.read()
          .then((snapshot) => figures.take(message, snapshot));
    });
    return valuesOf(await textOf(gathered));
  };
  const ofBoth = { [requests]: 7, [seconds]: 3.5, [quick]: 0, [inFlight]: 2, [heap]: 30 };
  expect(await read()).toEqual(ofBoth);

  silent.add(2);
  expect(await read()).toEqual({ ...ofBoth, [inFlight]: 1, [heap]: 10 });

  figures.end(2);
  workers.delete(2);
  workers.set(3, worker(2, 5));
  const withNext = { ...ofBoth, [requests]: 9, [seconds]: 4.5, [heap]: 10 };
  expect(await read()).toEqual(withNext);

  figures.end(3);
  workers.delete(3);
  expect(await read()).toEqual({ ...withNext, [inFlight]: 1 });

  figures.end(1);
  workers.delete(1);
  expect(await read()).toEqual({ ...withNext, [inFlight]: Number.NaN, [heap]: Number.NaN });
});
