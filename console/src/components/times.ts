import { counted } from './numbers.ts';
import { storedChoice } from './stored-choice.ts';

/** Whether times are shown as the reader's clock has them, or as UTC. */
export type TimeZoneChoice = 'utc' | 'local';

const stored = storedChoice<TimeZoneChoice>('annals.time-zone', ['local', 'utc']);

export const timeZone = stored.value;
export const chooseTimeZone = stored.choose;

/** The IANA name of the zone that the reader has chosen: `Europe/Berlin`. */
export function zoneName(): string {
  if (timeZone.value === 'utc') return 'UTC';
  const { timeZone: name } = new Intl.DateTimeFormat().resolvedOptions();
  // A browser that does not know its zone has a clock that shows UTC.
  return name === undefined || name === 'Etc/Unknown' ? 'UTC' : name;
}

const formats = { local: formatsOf(undefined), utc: formatsOf('UTC') };

function formatsOf(zone: string | undefined) {
  // Times have the form of the browser's language; the words are English. Two digits, so that columns line up.
  const day = { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' } as const;
  const minute = { hour: '2-digit', minute: '2-digit' } as const;
  const second = { ...minute, second: '2-digit' } as const;
  return {
    second: new Intl.DateTimeFormat(undefined, { ...day, ...second }),
    minute: new Intl.DateTimeFormat(undefined, { ...day, ...minute }),
    day: new Intl.DateTimeFormat(undefined, day),
    weekday: new Intl.DateTimeFormat(undefined, { timeZone: zone, dateStyle: 'full' }),
    clock: new Intl.DateTimeFormat(undefined, { timeZone: zone, ...second }),
  };
}

export type TimeDetail = 'second' | 'minute' | 'day' | 'weekday' | 'clock';

/**
 * A time as a text. `at` is milliseconds since 1970, or RFC 3339. Days of the usage page are UTC: pass `'utc'` as
 * `zone`.
 */
export function timeText(
  at: number | string,
  detail: TimeDetail = 'second',
  zone: TimeZoneChoice = timeZone.value,
): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? String(at) : formats[zone][detail].format(time);
}

/** Bounds of a range of time as RFC 3339 has them: from the first moment on, and before the other. */
export interface TimeBounds {
  readonly from?: string | undefined;
  readonly before?: string | undefined;
}

/**
 * When a day begins by the clock that the reader has chosen, in milliseconds since 1970. A day of 23 or 25 hours is one
 * day.
 *
 * @example
 * startOfDay(Date.now(), -1); // midnight at the beginning of yesterday
 */
export function startOfDay(at: number, later = 0): number {
  const time = new Date(at);
  if (timeZone.value === 'utc') return Date.UTC(time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate() + later);
  return new Date(time.getFullYear(), time.getMonth(), time.getDate() + later).getTime();
}

/** A moment as RFC 3339 by that clock: `2026-11-22T00:00:00+01:00`, or with `Z`. */
export function momentText(at: number): string {
  const utc = new Date(at).toISOString().replace('.000Z', 'Z');
  if (timeZone.value === 'utc') return utc;
  const minutes = -new Date(at).getTimezoneOffset();
  const local = new Date(at + minutes * 60_000)
    .toISOString()
    .slice(0, -1)
    .replace(/\.000$/, '');
  const two = (number: number) => String(number).padStart(2, '0');
  const size = Math.abs(minutes);
  // RFC 3339 has offsets of whole minutes. Some of the 19th century had seconds.
  if (!Number.isInteger(minutes)) return utc;
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** The days around a moment that people ask for most. */
export function boundsOfDay(name: 'today' | 'yesterday', now: number): TimeBounds {
  if (name === 'today') return { from: momentText(startOfDay(now)) };
  return { from: momentText(startOfDay(now, -1)), before: momentText(startOfDay(now)) };
}

/**
 * The fields of a form as a moment: `2026-11-22`, and `14:30` or an empty time for midnight. NaN where there is no such
 * moment.
 */
export function momentOf(date: string, time: string): number {
  const written = `${date}T${time === '' ? '00:00' : time}`;
  return Date.parse(timeZone.value === 'utc' ? `${written}Z` : written);
}

/** Units of a duration with their lengths in seconds, and how ISO 8601 writes so many of them. */
export const durationUnits = {
  weeks: { seconds: 604_800, iso: (count: string) => `P${count}W` },
  days: { seconds: 86_400, iso: (count: string) => `P${count}D` },
  hours: { seconds: 3_600, iso: (count: string) => `PT${count}H` },
  minutes: { seconds: 60, iso: (count: string) => `PT${count}M` },
  seconds: { seconds: 1, iso: (count: string) => `PT${count}S` },
} as const;

export type DurationUnit = keyof typeof durationUnits;

/** A duration as people say it. The count is a text, so that a half-written one stays as it is; empty: no duration. */
export interface Duration {
  readonly count: string;
  readonly unit: DurationUnit;
}

export const noDuration: Duration = { count: '', unit: 'days' };

const isoParts = { W: 604_800, D: 86_400, H: 3_600, M: 60, S: 1 } as const;

/**
 * A duration that the service has stored, in the largest unit that tells it whole.
 *
 * @example
 * durationOf('PT90M'); // { count: '90', unit: 'minutes' }
 * durationOf('P1DT12H'); // { count: '36', unit: 'hours' }
 */
export function durationOf(iso: string): Duration {
  const seconds = [...iso.matchAll(/(\d+)([WDHMS])/g)].reduce(
    (sum, [, count, part]) => sum + Number(count) * isoParts[part as keyof typeof isoParts],
    0,
  );
  // Fourteen days are said more often than two weeks.
  const units = (['days', 'hours', 'minutes', 'seconds'] as const).filter(
    (whole) => seconds % durationUnits[whole].seconds === 0,
  );
  const unit = iso.endsWith('W') ? 'weeks' : (units[0] ?? 'seconds');
  return { count: String(seconds / durationUnits[unit].seconds), unit };
}

/** A duration as the service takes it; undefined where there is none. */
export function isoOf({ count, unit }: Duration): string | undefined {
  const written = count.trim();
  return written === '' ? undefined : durationUnits[unit].iso(written);
}

/** `1 day`, `90 minutes`. */
export function durationWords(iso: string): string {
  const { count, unit } = durationOf(iso);
  return counted(Number(count), unit.slice(0, -1));
}
