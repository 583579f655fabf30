import type { ChangeHistogram } from '@annals/client';
import { changeTypes } from '../components/change-type.tsx';
import { startOfDay } from '../components/days.ts';
import type { Bars } from './bars.ts';

const lengths = { second: 1_000, minute: 60_000, hour: 3_600_000 } as const;

/** A histogram of changes as bars, by type and in the colours of the types. */
export function barsOfChanges({
  buckets,
  interval: { unit, count },
}: Pick<ChangeHistogram, 'buckets' | 'interval'>): Bars {
  const starts = buckets.map(({ at }) => Date.parse(at));
  const last = starts.at(-1) ?? 0;
  return {
    starts,
    end: unit === 'day' ? startOfDay(last, count) : last + count * lengths[unit],
    detail: unit === 'hour' ? 'minute' : unit,
    series: changeTypes.map((type) => ({
      label: type,
      colour: `--${type}-bar`,
      counts: buckets.map((bucket) => bucket[type]),
    })),
  };
}
