import { type ChangeType, changeTypes } from '../components/change-type.tsx';
import type { BarSeries } from './bar-chart.tsx';

/** Counts by type as the series of a chart, in the colours of the types. */
export function changeSeries(buckets: readonly Readonly<Record<ChangeType, number>>[]): BarSeries[] {
  return changeTypes.map((type) => ({
    label: type,
    colour: `--${type}-bar`,
    counts: buckets.map((bucket) => bucket[type]),
  }));
}
