import type { ChangeHistogram } from '@annals/client';
import { type ChangeType, changeTypes } from '../components/change-type.tsx';

/** Bars of one width, without gaps. */
export interface Bars {
  /** Milliseconds since 1970. */
  readonly starts: readonly number[];
  /** Milliseconds. */
  readonly width: number;
  readonly counts: Readonly<Record<ChangeType, readonly number[]>>;
}

/**
 * The buckets of a histogram as bars of a width that theirs divides, from one time to another. A tenant whose history is
 * young has smaller buckets than asked for; empty bars fill the rest.
 */
export function barsOf(
  { buckets }: Pick<ChangeHistogram, 'buckets'>,
  { width, from, to }: { readonly width: number; readonly from: number; readonly to: number },
): Bars {
  const first = Math.floor(from / width);
  const length = Math.floor(to / width) - first + 1;
  const counts = { create: zeros(length), update: zeros(length), delete: zeros(length) };
  for (const bucket of buckets) {
    const place = Math.floor(Date.parse(bucket.at) / width) - first;
    // The first bucket of a window may begin before it.
    const bar = Math.min(length - 1, Math.max(0, place));
    for (const type of changeTypes) counts[type][bar] = (counts[type][bar] ?? 0) + bucket[type];
  }
  return { starts: Array.from({ length }, (_, index) => (first + index) * width), width, counts };
}

/** How many changes of each type the buckets hold. */
export function sumsOf({ buckets }: Pick<ChangeHistogram, 'buckets'>): Record<ChangeType, number> {
  const sums = { create: 0, update: 0, delete: 0 };
  for (const bucket of buckets) for (const type of changeTypes) sums[type] += bucket[type];
  return sums;
}

function zeros(length: number): number[] {
  return Array.from({ length }, () => 0);
}
