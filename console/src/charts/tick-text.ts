import type { TimeZoneChoice } from '../components/time-text.ts';

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

/**
 * A time below a chart, as short as the distance of the ticks lets it be. At midnight the day stands in place of the clock.
 * Both are seconds.
 */
function tickText(at: number, distance: number, zone: TimeZoneChoice): string {
  const time = new Date(at * 1_000);
  const { month, day, minute, second } = formats[zone];
  if (distance >= 28 * dayLength) return month.format(time);
  if (distance >= dayLength) return day.format(time);
  return isMidnight(time, zone) ? day.format(time) : (distance >= 60 ? minute : second).format(time);
}

/** The times below a chart that ends at `end`: where it ends the next day or hour begins, which it does not show. All are seconds. */
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
