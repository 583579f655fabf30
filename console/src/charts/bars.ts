import type { ChangeHistogram } from '@annals/client';
import { changeTypes } from '../components/change-types.ts';
import { countText, dollarsText } from '../components/numbers.ts';
import { startOfDay, type TimeZoneChoice, timeText } from '../components/times.ts';

interface BarSeries {
  readonly label: string;
  /** The custom property of its colour: `--create-bar`. */
  readonly colour: string;
  readonly counts: readonly number[];
}

/** The bars of a chart. */
export interface Bars {
  /** Where each bar begins, in milliseconds since 1970. A day by the reader's clock may have 23 or 25 hours. */
  readonly starts: readonly number[];
  /** Where the last bar ends. */
  readonly end: number;
  readonly detail: 'day' | 'minute' | 'second';
  readonly series: readonly BarSeries[];
}

/** Bars, and how their times and figures are written. */
interface ShownBars extends Bars {
  /** Days of usage are UTC. Left out: what the reader has chosen. */
  readonly zone?: 'utc' | undefined;
  /** Left out: counts, which are whole. */
  readonly unit?: 'usd' | undefined;
}

/** `series` are stacked, the first one lowest. */
export interface BarChartProps extends ShownBars {
  /** What the chart shows, for those who do not see it. */
  readonly label: string;
  /** Called with the range that was dragged over, or the bar that was chosen, in milliseconds since 1970. */
  readonly onRange?: ((from: number, to: number) => void) | undefined;
}

/** Pixels; the style sheet keeps the place free until the bars are drawn. */
export const chartHeight = 132;

/** From the first moment on, and before the other; in milliseconds since 1970. */
export type Range = [from: number, before: number];

/** When the next bar begins. */
function endOf({ starts, end }: Bars, index: number): number {
  return starts[index + 1] ?? end;
}

export function middleOf(bars: Bars, index: number): number {
  return ((bars.starts[index] ?? 0) + endOf(bars, index)) / 2;
}

/** Narrows the time to one bar. */
export function showBar(props: BarChartProps, index: number | null | undefined): void {
  const from = props.starts[index ?? -1];
  if (from !== undefined) props.onRange?.(from, endOf(props, index ?? -1));
}

/** The text above the chart for the bar at the pointer. */
export function textOfBar(props: ShownBars, index: number | null | undefined): string {
  const from = props.starts[index ?? -1];
  return from === undefined ? '' : textOfRange(props, [from, endOf(props, index ?? -1)]);
}

/** A range of whole bars, and what is in them. */
export function textOfRange(props: ShownBars, [from, before]: Range): string {
  const { starts, series, unit } = props;
  const amountText = unit === 'usd' ? dollarsText : countText;
  const sums = series.map(({ label, counts }) => {
    const inside = counts.filter((_, index) => (starts[index] ?? 0) >= from && (starts[index] ?? 0) < before);
    return { label, sum: inside.reduce((sum, count) => sum + count, 0) };
  });
  const total = sums.reduce((sum, part) => sum + part.sum, 0);
  const parts = sums.filter(({ sum }) => sum > 0).map(({ label, sum }) => `${label} ${amountText(sum)}`);
  return `${rangeText(props, from, before)}   ${[amountText(total), ...parts].join(' · ')}`;
}

/** A range of whole bars in words. Days name the last one, other ranges their end. */
function rangeText({ detail, zone }: ShownBars, from: number, before: number): string {
  const first = timeText(from, detail, zone);
  const last = timeText(detail === 'day' ? before - 1 : before, detail, zone);
  if (first === last) return first;
  const [day, clock] = last.split(' ');
  return `${first} – ${clock !== undefined && first.startsWith(`${day} `) ? clock : last}`;
}

/** The bars that a range touches. A part of a bar cannot be selected. */
export function wholeBars({ starts, end }: Bars, from: number, to: number): Range {
  const first = starts.findLast((start) => start <= from) ?? starts[0] ?? from;
  return [first, starts.find((start) => start >= to) ?? end];
}

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

const formats = { local: formatsOf(undefined), utc: formatsOf('UTC') };

function formatsOf(timeZone: string | undefined) {
  return {
    month: new Intl.DateTimeFormat(undefined, { timeZone, month: 'short', year: 'numeric' }),
    day: new Intl.DateTimeFormat(undefined, { timeZone, day: 'numeric', month: 'short' }),
    minute: new Intl.DateTimeFormat(undefined, { timeZone, hour: '2-digit', minute: '2-digit' }),
    second: new Intl.DateTimeFormat(undefined, { timeZone, hour: '2-digit', minute: '2-digit', second: '2-digit' }),
  };
}

const dayLength = 86_400;

/** A time below a chart, as short as the distance of the ticks allows; at midnight the day. Both are seconds. */
function tickText(at: number, distance: number, zone: TimeZoneChoice): string {
  const time = new Date(at * 1_000);
  const { month, day, minute, second } = formats[zone];
  if (distance >= 28 * dayLength) return month.format(time);
  if (distance >= dayLength) return day.format(time);
  return isMidnight(time, zone) ? day.format(time) : (distance >= 60 ? minute : second).format(time);
}

/**
 * The times below a chart that ends at `end`: where it ends the next day or hour begins, which it does not show. All
 * are seconds.
 */
export function tickTexts(ticks: readonly number[], distance: number, { zone, end }: TickPlace): string[] {
  return ticks.map((tick) => (tick < end ? tickText(tick, distance, zone) : ''));
}

interface TickPlace {
  readonly zone: TimeZoneChoice;
  readonly end: number;
}

function isMidnight(time: Date, zone: TimeZoneChoice): boolean {
  if (zone === 'utc') return time.getTime() % 86_400_000 === 0;
  return time.getHours() + time.getMinutes() + time.getSeconds() === 0;
}
