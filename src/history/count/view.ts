import type { Facets } from '../search/facets.ts';
import type { Histogram } from '../search/histogram.ts';

/** Counts over time, as they are answered. */
export function histogramView({ from, to, interval, total, buckets, after }: Histogram) {
  return {
    from: timeOf(from),
    to: timeOf(to),
    interval,
    totalElements: total,
    buckets: buckets.map((bucket) => ({ ...bucket, at: timeOf(bucket.at) })),
    after,
  };
}

/** Counts by the values of a field, as they are answered. */
export function facetsView({ field, total, values, others }: Facets) {
  return { field, totalElements: total, values: [...values], others };
}

function timeOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}
