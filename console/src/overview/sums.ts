import type { ChangeHistogram } from '@annals/client';
import { type ChangeType, changeTypes } from '../components/change-type.tsx';

/** How many changes of each type the buckets hold. */
export function sumsOf({ buckets }: Pick<ChangeHistogram, 'buckets'>): Record<ChangeType, number> {
  const sums = { create: 0, update: 0, delete: 0 };
  for (const bucket of buckets) for (const type of changeTypes) sums[type] += bucket[type];
  return sums;
}
