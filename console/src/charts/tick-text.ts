import type { TimeZoneChoice } from '../components/time-text.ts';

const formats = { local: formatsOf(undefined), utc: formatsOf('UTC') };

function formatsOf(timeZone: string | undefined) {
  return {
    month: new Intl.DateTimeFormat('en-GB', { timeZone, month: 'short', year: 'numeric' }),
    day: new Intl.DateTimeFormat('en-GB', { timeZone, day: 'numeric', month: 'short' }),
    minute: new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }),
    second: new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'medium', hourCycle: 'h23' }),
  };
}

const dayLength = 86_400;

/**
 * A time below a chart, as short as the distance of the ticks lets it be. At midnight the day stands in place of the clock.
 * Both are seconds.
 */
export function tickText(at: number, distance: number, zone: TimeZoneChoice): string {
  const time = new Date(at * 1_000);
  const { month, day, minute, second } = formats[zone];
  if (distance >= 28 * dayLength) return month.format(time);
  if (distance >= dayLength) return day.format(time);
  const clock = (distance >= 60 ? minute : second).format(time);
  return /^00:00(?::00)?$/.test(clock) ? day.format(time) : clock;
}
