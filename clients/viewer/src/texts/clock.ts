/** Times and days as the reader's calendar has them. */
export interface Clock {
  /** The IANA name of the time zone; undefined where the browser's is meant. */
  readonly zone: string | undefined;
  /** `14:02`. */
  clock(at: number): string;
  /** A title of a day: `Today`, `Yesterday`, `Friday, 20 November`. */
  dayTitle(at: number, now: number): string;
  /** The day of a moment, as fields for dates have it: `2026-11-20`. */
  dayOf(at: number): string;
  /** All of a moment: `20 Nov 2026, 14:02`. */
  moment(at: number): string;
  /** `20 Nov 2026`, of a day that has no time zone. */
  date(day: string): string;
}

export function clockOf(tag: string, timeZone: string): Clock {
  const zone = isTimeZone(timeZone) ? timeZone : undefined;
  // Made when it is first needed: on a slow phone each takes milliseconds.
  const format = (options: Intl.DateTimeFormatOptions) => {
    let made: Intl.DateTimeFormat | undefined;
    return {
      format(at: number) {
        made ??= new Intl.DateTimeFormat(tag, { timeZone: zone, ...options });
        return made.format(at);
      },
    };
  };
  const clock = format({ timeStyle: 'short' });
  const moment = format({ dateStyle: 'medium', timeStyle: 'short' });
  const date = format({ dateStyle: 'medium', timeZone: 'UTC' });
  const dayOfYear = format({ weekday: 'long', day: 'numeric', month: 'long' });
  const dayOfOther = format({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
  const relative = new Intl.RelativeTimeFormat(tag, { numeric: 'auto' });
  const isoDay = isoDayIn(zone);
  const dayOf = (at: number) => isoDay.format(at);
  return {
    zone,
    clock: (at) => clock.format(at),
    dayOf,
    moment: (at) => moment.format(at),
    date: (day) => date.format(Date.parse(`${day}T00:00:00Z`)),
    dayTitle(at, now) {
      const [day, today] = [dayOf(at), dayOf(now)];
      const days = Math.round((Date.parse(day) - Date.parse(today)) / dayInMilliseconds);
      if (days === 0 || days === -1) return capitalized(relative.format(days, 'day'), tag);
      return (day.slice(0, 4) === today.slice(0, 4) ? dayOfYear : dayOfOther).format(at);
    },
  };
}

const dayInMilliseconds = 86_400_000;

/** The form of the Swedes is that of ISO 8601. */
function isoDayIn(zone: string | undefined): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' });
}

/**
 * When a day such as `2026-11-20` begins in a time zone, in milliseconds since 1970. NaN where it is no day. A day that
 * begins later than at midnight begins with its first moment.
 */
export function startOfDay(day: string, zone: string | undefined): number {
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight)) return midnight;
  const iso = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
  const offset = (at: number) => Date.parse(`${iso.format(at).replace(' ', 'T')}Z`) - at;
  // The offset may be another one at the moment that the first gives.
  const first = midnight - offset(midnight);
  const start = midnight - offset(first);
  // A clock that leaps over midnight shows the end of the day before: an offset later it is the day.
  return iso.format(start).startsWith(day) ? start : Math.max(first, start);
}

function isTimeZone(name: string): boolean {
  if (name === '') return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function capitalized(text: string, tag: string): string {
  const [first = ''] = text;
  return first.toLocaleUpperCase(tag) + text.slice(first.length);
}
